/** The npm package as `npm run build` makes it, in a folder of its own. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export const ROOT = join(import.meta.dirname, '../../..')

export class BuiltPackage implements Disposable {
  readonly scratch = mkdtempSync(join(tmpdir(), 'seamark-package-'))
  /** What `npm pack` packs. */
  readonly folder = join(this.scratch, 'npm')

  /** Empty. */
  readonly root = join(this.scratch, 'root')

  constructor() {
    mkdirSync(this.root)
    // Others read it, too: the image runs as another user.
    chmodSync(this.scratch, 0o755)
    run(process.execPath, [join(ROOT, 'scripts/package.mjs'), this.folder], ROOT)
  }

  /** The archive, in the scratch folder. */
  pack(): string {
    const options = ['--silent', '--pack-destination', this.scratch]
    return join(this.scratch, run('npm', ['pack', ...options, this.folder], this.scratch).trim())
  }

  [Symbol.dispose](): void {
    rmSync(this.scratch, { recursive: true, force: true })
  }
}

/** Returns stdout; throws with what the program said when it failed. */
export function run(command: string, args: readonly string[], cwd: string, env = process.env): string {
  const { status, stdout, stderr, error } = spawnSync(command, args, { cwd, env, encoding: 'utf8' })
  if (status !== 0)
    throw new Error(`${command} ${args.join(' ')} ended with ${status}: ${error?.message ?? stderr}${stdout}`)
  return stdout
}
