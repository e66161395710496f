-- A run that does not end is cancelled by its lens.
local editor = require('editor')

editor.run(function()
  editor.open('endless.py', { init_options = { trusted = true, python = vim.env.RANKSAFE_TEST_TORCH_PYTHON } })
  editor.run_lens('ranksafe.run')
  editor.wait('the script runs', function()
    return vim.fn.filereadable('alive') == 1
  end)
  editor.run_lens('ranksafe.cancelRun')
  editor.wait('the lenses of a script that does not run', function()
    for _, lens in ipairs(editor.lenses()) do
      if lens.command.command == 'ranksafe.run' then
        return true
      end
    end
  end)
  editor.equal(editor.diagnostics('ranksafe run'), {}, 'failures of a cancelled run')
end)
