/** `seamark completion SHELL`: prints a completion script. */
import { Argument, Command } from 'commander'
import type { Io } from '../../command.ts'
import { readCommandTree } from './command-tree.ts'
import { completionScript, type Shell } from './scripts.ts'

export function build(io: Io): Command {
  return new Command()
    .description('print a completion script for bash, zsh, fish or kubectl')
    .addArgument(new Argument('<shell>', 'the shell').choices(['bash', 'zsh', 'fish', 'kubectl']))
    .addHelpText(
      'after',
      `
  bash: source <(seamark completion bash)
  zsh:  seamark completion zsh > "\${fpath[1]}/_seamark"
  fish: seamark completion fish > ~/.config/fish/completions/seamark.fish
  kubectl seamark: seamark completion kubectl > kubectl_complete-seamark, which is executable and on PATH`,
    )
    .action(async (shell: Shell) => {
      io.stdout.write(completionScript(shell, await readCommandTree(io)))
    })
}
