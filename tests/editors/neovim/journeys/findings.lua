-- A finding is shown, hover tells about it, a fix is applied and the file saved.
local editor = require('editor')

editor.run(function()
  editor.open('train.py', { settings = { ranksafe = { launcher = 'accelerate' } } })
  local finding = editor.find('RS201')
  local line = vim.api.nvim_buf_get_lines(editor.buffer, finding.lnum, finding.lnum + 1, false)[1]
  editor.equal(line:sub(finding.col + 1, finding.end_col), '"auto"', 'the text under the finding')
  editor.wait('the launcher of the settings', function()
    return editor.find('RS201').severity <= vim.diagnostic.severity.WARN
  end)

  vim.api.nvim_win_set_cursor(0, { finding.lnum + 1, finding.col + 1 })
  local shown = editor.hover()
  assert(shown:find('RS201', 1, true), shown)
  assert(shown:find('accelerate', 1, true), shown)

  vim.lsp.buf.code_action({
    apply = true,
    filter = function(action)
      return action.isPreferred and action.title:find('device_map') ~= nil
    end,
  })
  editor.wait('the fix', function()
    return not editor.text():find('device_map')
  end)
  editor.wait('no finding any more', function()
    return #editor.diagnostics() == 0
  end)
  vim.cmd.write()
  local saved = table.concat(vim.fn.readfile('train.py'), '\n')
  assert(not saved:find('device_map'), saved)
end)
