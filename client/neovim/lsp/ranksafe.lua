---@brief
---
--- https://github.com/ranksafe/ranksafe
---
--- Finds what breaks PyTorch and Hugging Face code on more than one GPU, and fixes it. It is installed with `pip`:
---
--- ```sh
--- pip install ranksafe
--- ```
---
--- Scripts are run only in a workspace that you trust; say so in your own configuration:
---
--- ```lua
--- vim.lsp.config('ranksafe', { init_options = { trusted = true } })
--- ```

---@type vim.lsp.Config
return {
  cmd = { 'ranksafe', 'lsp' },
  filetypes = { 'python' },
  root_markers = { 'ranksafe.toml', 'pyproject.toml', '.git' },
  init_options = { locale = vim.v.lang, trusted = false },
  settings = { ranksafe = vim.empty_dict() },
  on_attach = function(client, bufnr)
    local commands = {
      LspRanksafeReport = { 'ranksafe.openReport', "Open the report of the project's last run" },
      LspRanksafeRuns = { 'ranksafe.showRuns', "List the project's runs" },
    }
    for name, command in pairs(commands) do
      vim.api.nvim_buf_create_user_command(bufnr, name, function()
        client:exec_cmd({ title = name, command = command[1] })
      end, { desc = command[2] })
    end
    vim.api.nvim_buf_create_user_command(bufnr, 'LspRanksafeFit', function(given)
      local gpus = { gpus = tonumber(given.fargs[1]), deviceModel = given.fargs[2] }
      local options = next(gpus) and gpus or vim.empty_dict()
      local arguments = { vim.uri_from_bufnr(bufnr), options }
      client:exec_cmd({ title = 'LspRanksafeFit', command = 'ranksafe.fit', arguments = arguments })
    end, { nargs = '*', desc = 'Forecast whether the script fits the memory of GPUs: 8 h100' })
    vim.api.nvim_buf_create_user_command(bufnr, 'LspRanksafeFailures', function()
      local failures = vim.tbl_filter(function(one)
        return one.source == 'ranksafe run'
      end, vim.diagnostic.get())
      vim.fn.setqflist({}, ' ', { title = 'ranksafe run', items = vim.diagnostic.toqflist(failures) })
      vim.cmd.copen()
    end, { desc = 'Put the failures of the last runs into the quickfix list' })
  end,
}
