-- Typing in insert mode through a broken text keeps the finding; Chinese is spoken where the locale is Chinese.
local editor = require('editor')

editor.run(function()
  editor.open('train.py', { init_options = { locale = 'zh_CN.UTF-8', trusted = false } })
  local finding = editor.find('RS201')
  assert(finding.message:find('启动'), finding.message)

  local typed = 'value = f("中文🤗", (1,'
  vim.api.nvim_buf_set_lines(editor.buffer, 0, 0, false, { '' })
  for index = 1, vim.fn.strchars(typed) do
    vim.api.nvim_buf_set_lines(editor.buffer, 0, 1, false, { vim.fn.strcharpart(typed, 0, index) })
    vim.wait(15)
  end
  -- Longer than the server's pause, so that what it decides at rest is seen, too.
  vim.wait(600)
  local found = editor.find('RS201')
  editor.equal(found.lnum, finding.lnum + 1, 'the line of the finding')

  vim.api.nvim_buf_set_lines(editor.buffer, 0, 1, false, {})
  editor.wait('the finding on its old line', function()
    return editor.find('RS201').lnum == finding.lnum
  end)
end)
