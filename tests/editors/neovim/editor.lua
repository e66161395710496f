-- What the journeys share: start ranksafe as the shipped configuration does, and wait for what a user would see.
local M = {}

-- A rehearsal on save runs at the lowest priority: on a busy machine it takes its time.
local LONGEST_WAIT_MS = 180000

-- Python's own provider would be looked for at every .py file, for seconds.
vim.g.loaded_python3_provider = 0

function M.wait(what, condition)
  local value
  local came = vim.wait(LONGEST_WAIT_MS, function()
    value = condition()
    return value
  end, 20)
  if not came then
    error('it never came to: ' .. what, 2)
  end
  return value
end

function M.equal(actual, expected, what)
  if not vim.deep_equal(actual, expected) then
    error(('%s: %s instead of %s'):format(what, vim.inspect(actual), vim.inspect(expected)), 2)
  end
end

-- Open a file with the server attached; `overrides` go on top of lsp/ranksafe.lua.
function M.open(path, overrides)
  if overrides then
    vim.lsp.config('ranksafe', overrides)
  end
  vim.lsp.enable('ranksafe')
  vim.cmd.filetype('on')
  vim.cmd.edit(path)
  M.buffer = vim.api.nvim_get_current_buf()
  M.client = M.wait('the server is attached', function()
    return vim.lsp.get_clients({ name = 'ranksafe', bufnr = M.buffer })[1]
  end)
end

function M.diagnostics(source)
  return vim.tbl_filter(function(one)
    return source == nil or one.source == source
  end, vim.diagnostic.get(M.buffer))
end

function M.find(code)
  return M.wait('a diagnostic ' .. code, function()
    for _, one in ipairs(M.diagnostics()) do
      if one.code == code then
        return one
      end
    end
  end)
end

-- The text of the hover at the cursor; the window is closed again.
function M.hover()
  vim.lsp.buf.hover()
  local shown = M.wait('the hover', function()
    for _, window in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(window).relative ~= '' then
        local buffer = vim.api.nvim_win_get_buf(window)
        return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n')
      end
    end
  end)
  vim.cmd('silent! fclose!')
  return shown
end

function M.lenses()
  vim.lsp.codelens.refresh({ bufnr = M.buffer })
  return M.wait('resolved lenses', function()
    local lenses = vim.lsp.codelens.get(M.buffer)
    for _, lens in ipairs(lenses) do
      if not lens.command then
        return nil
      end
    end
    return lenses
  end)
end

-- Run the lens with a command as `vim.lsp.codelens.run()` does after the user's choice.
function M.run_lens(command)
  local lens = M.wait('the lens ' .. command, function()
    for _, one in ipairs(M.lenses()) do
      if one.command.command == command then
        return one
      end
    end
  end)
  vim.api.nvim_win_set_cursor(0, { lens.range.start.line + 1, 0 })
  vim.ui.select = function(options, _, choose)
    for _, option in ipairs(options) do
      if option.lens.command.command == command then
        return choose(option)
      end
    end
    error('no lens ' .. command)
  end
  vim.lsp.codelens.run()
end

-- The root cause of the script's last run, as a diagnostic, and the text of its line.
function M.failure()
  local failure = M.wait('the failure', function()
    for _, one in ipairs(M.diagnostics('ranksafe run')) do
      if one.severity == vim.diagnostic.severity.ERROR then
        return one
      end
    end
  end)
  return failure, vim.api.nvim_buf_get_lines(M.buffer, failure.lnum, failure.lnum + 1, false)[1]
end

-- Wait until the script's run is over: a failure is shown earlier than that.
function M.ended()
  M.wait('the end of the run', function()
    for _, lens in ipairs(M.lenses()) do
      if lens.command.command == 'ranksafe.openReport' then
        return true
      end
    end
  end)
end

function M.text()
  return table.concat(vim.api.nvim_buf_get_lines(M.buffer, 0, -1, false), '\n')
end

function M.run(journey)
  local fine, message = xpcall(journey, debug.traceback)
  for _, client in ipairs(vim.lsp.get_clients()) do
    client:stop()
  end
  vim.wait(20000, function()
    return #vim.lsp.get_clients() == 0
  end)
  if not fine then
    io.stderr:write(tostring(message) .. '\n')
    os.exit(1)
  end
  print('journey finished')
end

return M
