"""Launch, resume and delete: plan, confirm, apply, follow; each with intent saved before acting."""
