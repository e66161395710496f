-- A script is rehearsed on two simulated GPUs by its lens; the failure of one of them stands on its line.
local editor = require('editor')

editor.run(function()
  editor.open('replicas.py', { init_options = { trusted = true, python = vim.env.RANKSAFE_TEST_TORCH_PYTHON } })
  editor.run_lens('ranksafe.rehearse')
  local failure, line = editor.failure()
  assert(line:find('self.scale', 1, true), line)
  assert(failure.message:find('same device', 1, true), failure.message)
  assert(failure.message:find('cuda:1', 1, true), failure.message)
  assert(failure.code == 'RS513', failure.code)
end)
