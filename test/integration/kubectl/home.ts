/** A folder of its own for each kubectl: manifests to name on the command line, configuration, discovery cache, editor. */
import { chmod, cp, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runKubectl, splitArguments, type Kubectl, type Outcome, type RunOptions } from './binaries.ts'
import { tidy } from './pattern.ts'
import { manifests } from './targets.ts'

export interface Home {
  run(line: string, options?: Pick<RunOptions, 'stdin' | 'stopAt'>): Promise<Outcome>
  remove(): Promise<void>
}

export async function makeHome(kubectl: Kubectl, kubeconfig: string): Promise<Home> {
  const folder = await mkdtemp(join(tmpdir(), 'kubectl-'))
  const editor = join(folder, 'edit.sh')
  await cp(manifests, folder, { recursive: true })
  await chmod(editor, 0o755)
  await writeFile(join(folder, 'kubeconfig'), kubeconfig, { mode: 0o600 })
  const env = { PATH: process.env['PATH'], HOME: folder, KUBECONFIG: join(folder, 'kubeconfig'), EDITOR: editor }
  return {
    async run(line, options = {}) {
      const outcome = await runKubectl(kubectl, splitArguments(line), { cwd: folder, env, ...options })
      return { ...outcome, stdout: tidy(outcome.stdout), stderr: tidy(outcome.stderr) }
    },
    remove: async () => rm(folder, { recursive: true, force: true }),
  }
}
