-- A script is rehearsed on two simulated GPUs by its lens; the failure of one of them stands on its line.
local editor = require('editor')

editor.run(function()
  editor.open('replicas.py', { init_options = { trusted = true, python = vim.env.RANKSAFE_TEST_TORCH_PYTHON } })
  editor.run_lens('ranksafe.rehearse')
  local failure = editor.wait('the failure', function()
    for _, one in ipairs(editor.diagnostics('ranksafe run')) do
      if one.severity == vim.diagnostic.severity.ERROR then
        return one
      end
    end
  end)
  local line = vim.api.nvim_buf_get_lines(editor.buffer, failure.lnum, failure.lnum + 1, false)[1]
  assert(line:find('self.scale', 1, true), line)
  assert(failure.message:find('same device', 1, true), failure.message)
  assert(failure.message:find('cuda:1', 1, true), failure.message)
  assert(failure.code == 'RS513', failure.code)
end)
