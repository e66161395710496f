---@type vim.lsp.Config
return {
  cmd = { 'ranksafe', 'lsp' },
  filetypes = { 'python' },
  root_markers = { 'ranksafe.toml', 'pyproject.toml', '.git' },
  init_options = { locale = vim.v.lang, trusted = false },
  settings = { ranksafe = vim.empty_dict() },
  on_attach = function(client, buffer)
    for name, command in pairs({ RanksafeReport = 'ranksafe.openReport', RanksafeRuns = 'ranksafe.showRuns' }) do
      vim.api.nvim_buf_create_user_command(buffer, name, function()
        client:exec_cmd({ title = name, command = command })
      end, {})
    end
    vim.api.nvim_buf_create_user_command(buffer, 'RanksafeFailures', function()
      local failures = vim.tbl_filter(function(one)
        return one.source == 'ranksafe run'
      end, vim.diagnostic.get())
      vim.fn.setqflist({}, ' ', { title = 'ranksafe run', items = vim.diagnostic.toqflist(failures) })
      vim.cmd.copen()
    end, {})
  end,
}
