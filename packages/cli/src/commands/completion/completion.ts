/** `seamark completion SHELL`: prints a completion script. */
import { Argument, Command } from 'commander'
import type { Io } from '../../command.ts'
import { readCommandTree } from './command-tree.ts'
import { completionScript, type Shell } from './scripts.ts'

export function build(io: Io): Command {
  return new Command()
    .description('print a completion script for bash, zsh or fish')
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      `
  bash: source <(seamark completion bash)
  zsh:  seamark completion zsh > "\${fpath[1]}/_seamark"
  fish: seamark completion fish > ~/.config/fish/completions/seamark.fish`,
    )
    .action(async (shell: Shell) => {
      io.stdout.write(completionScript(shell, await readCommandTree(io)))
    })
}
