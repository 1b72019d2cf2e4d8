"""`google.cloud.billing.v1.CloudBilling`: one open account that pays for every project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.cloud.billing_v1.types import cloud_billing
from google.rpc import code_pb2

from tpudash.emulator.errors import ApiError, invalid_field, not_found
from tpudash.emulator.rpc import Call, Method, Service, raw
from tpudash.emulator.services.paging import take_page
from tpudash.emulator.world.budgets import BILLING_ACCOUNT

if TYPE_CHECKING:
    from tpudash.emulator.world.world import World


class BillingService:
    """Answers for billing accounts; nothing about them can be changed."""

    def __init__(self, world: World) -> None:
        self._world = world

    def table(self) -> Service:
        """Return the methods that read."""
        account = cloud_billing.BillingAccount
        rows = {
            "GetProjectBillingInfo": (self.get_project, cloud_billing.ProjectBillingInfo),
            "ListProjectBillingInfo": (
                self.list_projects,
                cloud_billing.ListProjectBillingInfoResponse,
            ),
            "ListBillingAccounts": (
                self.list_accounts,
                cloud_billing.ListBillingAccountsResponse,
            ),
            "GetBillingAccount": (self.get_account, account),
        }
        methods = [
            Method(name, raw(getattr(cloud_billing, f"{name}Request")), raw(response), function)
            for name, (function, response) in rows.items()
        ]
        return Service("google.cloud.billing.v1.CloudBilling", tuple(methods))

    @staticmethod
    def _account() -> Any:
        return raw(cloud_billing.BillingAccount)(
            name=BILLING_ACCOUNT, open_=True, display_name="Emulated billing account"
        )

    async def get_project(self, request: Any, _: Call) -> Any:
        """Return the billing account of a project."""
        parts = request.name.split("/")
        if len(parts) != 2 or parts[0] != "projects":
            raise invalid_field("name", f'"{request.name}" is not projects/*')
        return self._info(parts[1])

    @staticmethod
    def _info(project: str) -> Any:
        return raw(cloud_billing.ProjectBillingInfo)(
            name=f"projects/{project}/billingInfo",
            project_id=project,
            billing_account_name=BILLING_ACCOUNT,
            billing_enabled=True,
        )

    async def list_projects(self, request: Any, _: Call) -> Any:
        """List the projects that have nodes."""
        if request.name != BILLING_ACCOUNT:
            raise ApiError(code_pb2.PERMISSION_DENIED, "The caller does not have permission")
        projects = sorted({record.name.project for record in self._world.nodes})
        items = [self._info(project) for project in projects]
        page, token = take_page(
            items, request.page_size, request.page_token, default=100, maximum=100
        )
        return raw(cloud_billing.ListProjectBillingInfoResponse)(
            project_billing_info=page, next_page_token=token
        )

    async def list_accounts(self, request: Any, _: Call) -> Any:  # noqa: ARG002
        """List the one account."""
        return raw(cloud_billing.ListBillingAccountsResponse)(billing_accounts=[self._account()])

    async def get_account(self, request: Any, _: Call) -> Any:
        """Return the one account."""
        if request.name != BILLING_ACCOUNT:
            raise not_found(request.name)
        return self._account()
