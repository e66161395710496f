-- The first ten kinds of mistakes, each with what it needs in another file: squiggle, hover, fix.
local editor = require('editor')

local pitfalls = vim.json.decode(table.concat(vim.fn.readfile('everyday.json'), '\n'))

local function text_below(finding)
  return vim.api.nvim_buf_get_text(
    editor.buffer, finding.lnum, finding.col, finding.end_lnum, finding.end_col, {}
  )[1]
end

-- The titles of what the light bulb offers for a finding.
local function actions(finding)
  local range = {
    start = { line = finding.lnum, character = finding.col },
    ['end'] = { line = finding.end_lnum, character = finding.end_col },
  }
  local answer = editor.client:request_sync('textDocument/codeAction', {
    textDocument = vim.lsp.util.make_text_document_params(editor.buffer),
    range = range,
    context = { diagnostics = { finding.user_data.lsp } },
  }, 20000, editor.buffer)
  return vim.tbl_map(function(action)
    return action.title
  end, answer.result)
end

editor.run(function()
  for _, pitfall in ipairs(pitfalls) do
    editor.open(pitfall.file)
    local finding = editor.find(pitfall.code)
    editor.equal(text_below(finding), pitfall.text, pitfall.code .. ', the text under the finding')
    vim.api.nvim_win_set_cursor(0, { finding.lnum + 1, finding.col })
    local shown = editor.hover()
    assert(shown:find(pitfall.code, 1, true), pitfall.code .. ': ' .. shown)
    local offered = table.concat(actions(finding), '\n')
    if pitfall.fix == vim.NIL then
      assert(not offered:find('fix', 1, true), pitfall.code .. ': ' .. offered)
    else
      assert(offered:find(pitfall.fix, 1, true), pitfall.code .. ': ' .. offered)
    end
  end
end)
