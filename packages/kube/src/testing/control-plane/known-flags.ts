/**
 * The flags supported by a server binary, read from its `--help` once per binary: releases remove and add them (etcd
 * 3.6 renamed every `--experimental-…`, 3.4 has no `--unsafe-no-fsync`), and a server does not start with an unknown
 * flag.
 */
import { execFile } from 'node:child_process'

const known = new Map<string, Promise<ReadonlySet<string>>>()

/** Without `=value`, e.g. `--data-dir`. Rejects if the binary prints no flags. */
export async function knownFlags(command: string): Promise<ReadonlySet<string>> {
  const flags = known.get(command) ?? readFlags(command)
  known.set(command, flags)
  return flags
}

async function readFlags(command: string): Promise<ReadonlySet<string>> {
  const text = await new Promise<string>((resolve, reject) => {
    // The stream and exit code of help differ between programs and releases.
    execFile(command, ['--help'], { timeout: 20_000, maxBuffer: 2 ** 23 }, (error, stdout, stderr) => {
      const help = stdout + stderr
      if (help.includes('--')) resolve(help)
      else reject(new Error(`${command} --help printed no flags`, { cause: error ?? undefined }))
    })
  })
  return new Set([...text.matchAll(/^\s*(?:-\w, )?(--[\w-]+)/gm)].map(([, flag = '']) => flag))
}
