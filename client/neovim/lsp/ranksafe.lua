---@type vim.lsp.Config
return {
  cmd = { 'ranksafe', 'lsp' },
  filetypes = { 'python' },
  root_markers = { 'ranksafe.toml', 'pyproject.toml', '.git' },
  init_options = { locale = vim.v.lang, trusted = false },
  settings = { ranksafe = vim.empty_dict() },
}
