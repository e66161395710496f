-- Until the user agrees, findings are shown and nothing can be run.
local editor = require('editor')

editor.run(function()
  editor.open('train.py')
  editor.find('RS201')
  editor.equal(editor.lenses(), {}, 'the lenses')
  editor.client:exec_cmd({ title = '', command = 'ranksafe.run', arguments = { vim.uri_from_bufnr(editor.buffer) } })
  editor.wait('the refusal', function()
    return vim.api.nvim_exec2('messages', { output = true }).output:find('until this workspace is trusted')
  end)
  editor.client:exec_cmd({ title = '', command = 'ranksafe.trustWorkspace' })
  editor.wait('lenses', function()
    return #editor.lenses() > 0
  end)
end)
