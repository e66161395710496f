"""The language server: one module per LSP feature, no analysis."""
