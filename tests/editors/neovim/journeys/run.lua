-- A script is run by its lens; its failure stands on its line, and goes when the line is edited. The log opens.
local editor = require('editor')

editor.run(function()
  editor.open('failing.py', { init_options = { trusted = true, python = vim.env.RANKSAFE_TEST_TORCH_PYTHON } })
  editor.run_lens('ranksafe.smokeRun')
  local failure, line = editor.failure()
  assert(line:find('raise ValueError'), line)
  assert(failure.message:find('ValueError: bad batch (on rank 1)', 1, true), failure.message)

  local related = failure.user_data.lsp.relatedInformation
  assert(related and #related > 0, 'the call chain')

  vim.api.nvim_buf_set_lines(editor.buffer, failure.lnum, failure.lnum + 1, false, { '    pass' })
  editor.wait('the failure gone', function()
    return #vim.tbl_filter(function(one)
      return one.severity == vim.diagnostic.severity.ERROR
    end, editor.diagnostics('ranksafe run')) == 0
  end)

  vim.cmd.write()
  editor.run_lens('ranksafe.openLog')
  editor.wait('the log', function()
    return vim.api.nvim_buf_get_name(0):find('log.txt', 1, true)
  end)
end)
