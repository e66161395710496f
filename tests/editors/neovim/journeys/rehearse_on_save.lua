-- A script that was rehearsed is rehearsed again on save: its finding is confirmed, and gone when it is mended.
local editor = require('editor')

editor.run(function()
  local python = vim.env.RANKSAFE_TEST_TORCH_PYTHON
  editor.open('replicas.py', { init_options = { trusted = true, python = python, rehearseOnSave = true } })
  editor.run_lens('ranksafe.rehearse')
  editor.failure()
  editor.ended()
  local finding = editor.wait('the finding, confirmed', function()
    for _, one in ipairs(editor.diagnostics('ranksafe')) do
      if one.code == 'RS513' and one.message:find('Confirmed on 2 simulated GPUs', 1, true) then
        return one
      end
    end
  end)

  local line = vim.api.nvim_buf_get_lines(0, finding.lnum, finding.lnum + 1, false)[1]
  local value = line:match('self%.scale = (.*)$')
  line = line:gsub('self%.scale = .*$', '') .. ("self.register_buffer('scale', %s)"):format(value)
  vim.api.nvim_buf_set_lines(0, finding.lnum, finding.lnum + 1, false, { line })
  assert(#editor.diagnostics('ranksafe run') > 0, 'the failure stands on a line that was not edited')
  vim.cmd.write()
  editor.wait('nothing to be said any more', function()
    return #editor.diagnostics() == 0
  end)
end)
