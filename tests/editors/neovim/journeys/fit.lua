-- A script that takes too much of a T4: its lens says so, its line, and the action after which it fits.
local editor = require('editor')

local function lens(beginning)
  return editor.wait('the lens ' .. beginning, function()
    for _, one in ipairs(editor.lenses()) do
      if vim.startswith(one.command.title, beginning) then
        return one
      end
    end
  end)
end

editor.run(function()
  editor.open('too_large.py', { init_options = { trusted = true, python = vim.env.RANKSAFE_TEST_TORCH_PYTHON } })
  lens('Does it fit?')
  vim.cmd('LspRanksafeFit 1 t4')
  lens('Does not fit 1 × T4: at least ')
  local found = editor.wait('the diagnostic', function()
    return editor.diagnostics('ranksafe fit')[1]
  end)
  local line = vim.api.nvim_buf_get_lines(0, found.lnum, found.lnum + 1, false)[1]
  assert(line:find('loss.backward()', 1, true), line)
  assert(found.message:find('Tried to allocate 2.00 GiB', 1, true), found.message)

  -- The search, as the action on the diagnostic offers it; then the edit that was seen to fit.
  vim.api.nvim_win_set_cursor(0, { found.lnum + 1, 12 })
  vim.lsp.buf.code_action({
    apply = true,
    filter = function(action)
      return vim.startswith(action.title, 'What would make it fit?')
    end,
  })
  local function fits(action)
    return action.title:find('--batch-size 131072 → 65536', 1, true) ~= nil
  end
  editor.wait('the edit', function()
    vim.lsp.buf.code_action({ apply = true, filter = fits })
    vim.wait(500)
    return editor.text():find('default=65536', 1, true)
  end)
  assert(editor.text():find('default=2)', 1, true), editor.text())
  vim.cmd.write()
  -- The search may still try something else; until its end the lens is the one that cancels it.
  editor.wait('the answer of before the edit', function()
    for _, one in ipairs(editor.lenses()) do
      if one.command.title:find('(before the last edits)', 1, true) then
        return true
      end
    end
  end)
  vim.cmd('LspRanksafeFit')
  lens('Fits 1 × T4: ')
  editor.wait('nothing to be said any more', function()
    return #editor.diagnostics('ranksafe fit') == 0
  end)
end)
