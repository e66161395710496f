-- A deadlock over two files: only the caller is open, both arms are shown, a fix removes it; so does an edit of the other file.
local editor = require('editor')

local CALL = 'metrics.mean_over_ranks(loss)'

local function without_deadlock()
  editor.wait('the deadlock gone', function()
    return #editor.diagnostics() == 0
  end)
end

-- The related places of a diagnostic as `FILE:LINE: MESSAGE`.
local function places(finding)
  return vim.tbl_map(function(related)
    local name = vim.fs.basename(vim.uri_to_fname(related.location.uri))
    return ('%s:%d: %s'):format(name, related.location.range.start.line + 1, related.message)
  end, finding.user_data.lsp.relatedInformation)
end

editor.run(function()
  editor.open('guarded_metrics.py')
  local finding = editor.find('RS401')
  local line = vim.api.nvim_buf_get_lines(editor.buffer, finding.lnum, finding.lnum + 1, false)[1]
  editor.equal(line:sub(finding.col + 1, finding.end_col), CALL, 'the text under the finding')
  local sentence = 'rank 0 will wait in all_reduce, while the other ranks will go to barrier'
  assert(finding.message:find(sentence, 1, true), finding.message)
  editor.equal(places(finding), {
    'guarded_metrics.py:12: the ranks separate here',
    'metrics.py:9: all_reduce is performed here',
    'guarded_metrics.py:14: the other ranks go on here',
    'guarded_metrics.py:12: dist.get_rank() differs between ranks',
  }, 'the related places')
  editor.equal(vim.fn.bufexists('metrics.py'), 0, 'whether the other file is open')

  vim.api.nvim_win_set_cursor(0, { finding.lnum + 1, finding.col })
  vim.lsp.buf.code_action({
    apply = true,
    filter = function(action)
      return action.title:find('Let all ranks perform all_reduce', 1, true) ~= nil
    end,
  })
  editor.wait('the fix', function()
    return editor.text():find('result = ' .. CALL, 1, true)
  end)
  without_deadlock()
  vim.cmd.write()
  local saved = table.concat(vim.fn.readfile('guarded_metrics.py'), '\n')
  assert(saved:find('if dist.get_rank() == 0:\n            print(step, result)', 1, true), saved)

  vim.cmd.undo()
  editor.find('RS401')
  vim.cmd.write()
  vim.cmd.split('metrics.py')
  vim.fn.search('all_reduce')
  vim.cmd('delete')
  vim.cmd.write()
  without_deadlock()
end)
