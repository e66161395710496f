-- The failures of a run as a quickfix list, its report and the project's history in the browser.
local editor = require('editor')

editor.run(function()
  editor.open('failing.py', { init_options = { trusted = true, python = vim.env.RANKSAFE_TEST_TORCH_PYTHON } })
  editor.run_lens('ranksafe.smokeRun')
  local failure = editor.failure()
  editor.ended()

  vim.cmd.LspRanksafeFailures()
  editor.equal(vim.bo.buftype, 'quickfix', 'the window that has the focus')
  local list = vim.fn.getqflist({ title = true, items = true })
  editor.equal(list.title, 'ranksafe run', 'its title')
  local root = vim.tbl_filter(function(item)
    return item.type == 'E'
  end, list.items)
  editor.equal(#root, 1, 'root causes')
  editor.equal({ root[1].bufnr, root[1].lnum }, { editor.buffer, failure.lnum + 1 }, 'its place')
  assert(root[1].text:find('ValueError: bad batch', 1, true), root[1].text)
  vim.cmd.cclose()

  local opened
  vim.ui.open = function(address)
    opened = address
    return {
      wait = function()
        return { code = 0 }
      end,
    }
  end
  for command, pattern in pairs({ LspRanksafeReport = '/report%.html$', LspRanksafeRuns = '/runs%.html$' }) do
    opened = nil
    vim.cmd[command]()
    editor.wait(command, function()
      return opened and opened:find(pattern)
    end)
    local page = table.concat(vim.fn.readfile(vim.uri_to_fname(opened)), '\n')
    assert(page:find('ValueError: bad batch', 1, true), page:sub(1, 500))
  end
end)
