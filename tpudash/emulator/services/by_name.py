"""Carries messages from one version of an API to another by the names of their fields.

The numbers differ between `google.cloud.tpu.v2` and `v2alpha1`, so bytes of one are rubbish in the
other.
"""

from __future__ import annotations

from typing import Any


def carry_over(source: Any, target: Any) -> Any:
    """Copy every field that both messages have under the same name; return the target."""
    names = target.DESCRIPTOR.fields_by_name
    for field, value in source.ListFields():
        if field.name in names:
            _carry_field(field, value, target)
    return target


def _carry_field(field: Any, value: Any, target: Any) -> None:
    other = getattr(target, field.name, None)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        getattr(target, field.name).update(value)
    elif field.is_repeated and field.message_type is not None:
        for item in value:
            _carry_message(item, getattr(target, field.name).add())
    elif field.is_repeated:
        getattr(target, field.name).extend(value)
    elif field.message_type is not None and other is not None:
        _carry_message(value, other)
        other.SetInParent()
    else:
        setattr(target, field.name, value)


def _carry_message(source: Any, target: Any) -> None:
    if source.DESCRIPTOR is target.DESCRIPTOR:
        target.CopyFrom(source)
    else:
        carry_over(source, target)
