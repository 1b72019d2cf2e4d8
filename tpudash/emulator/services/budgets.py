"""`google.cloud.billing.budgets.v1.BudgetService`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.cloud.billing.budgets_v1.types import budget_model, budget_service
from google.protobuf import empty_pb2

from tpudash.emulator.identifiers import project_number
from tpudash.emulator.rpc import Call, Method, Service, raw
from tpudash.emulator.services.paging import take_page

if TYPE_CHECKING:
    from tpudash.emulator.world.world import World


class BudgetsService:
    """Answers for budgets."""

    def __init__(self, world: World) -> None:
        self._budgets = world.budgets

    def table(self) -> Service:
        """Return the service with all its methods."""
        budget = budget_model.Budget
        rows: dict[str, tuple[Any, Any, bool]] = {
            "ListBudgets": (self.list, budget_service.ListBudgetsResponse, False),
            "GetBudget": (self.get, budget, False),
            "CreateBudget": (self.create, budget, True),
            "UpdateBudget": (self.update, budget, True),
            "DeleteBudget": (self.delete, empty_pb2.Empty, True),
        }
        methods = [
            Method(
                name,
                raw(getattr(budget_service, f"{name}Request")),
                raw(response),
                function,
                mutating=mutating,
            )
            for name, (function, response, mutating) in rows.items()
        ]
        return Service("google.cloud.billing.budgets.v1.BudgetService", tuple(methods))

    async def list(self, request: Any, _: Call) -> Any:
        """List the budgets of an account, or those that filter for the project in `scope`."""
        budgets = self._budgets.under(request.parent)
        if request.scope:
            number = f"projects/{project_number(request.scope.removeprefix('projects/'))}"
            budgets = [item for item in budgets if number in item.budget_filter.projects]
        page, token = take_page(
            budgets, request.page_size, request.page_token, default=100, maximum=100
        )
        return raw(budget_service.ListBudgetsResponse)(budgets=page, next_page_token=token)

    async def get(self, request: Any, _: Call) -> Any:
        """Return a budget."""
        return self._budgets.get(request.name)

    async def create(self, request: Any, _: Call) -> Any:
        """Add a budget."""
        return self._budgets.create(request.parent, request.budget)

    async def update(self, request: Any, _: Call) -> Any:
        """Change a budget."""
        return self._budgets.update(request.budget, request.update_mask)

    async def delete(self, request: Any, _: Call) -> Any:
        """Remove a budget."""
        self._budgets.delete(request.name)
        return empty_pb2.Empty()
