/** One file per scope in `folder`, replaced atomically; a lock file excludes concurrent processes. */
import { open, readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { makePrivateFolder, writePrivateFile } from '@seamark/kube/private-file'
import { RecordsError } from '../rrset/error.ts'
import type { HeldState } from './held-change.ts'
import type { HeldStore, StateCodec } from './held-store.ts'

/** An older lock was left by a process that died: an update takes milliseconds. */
const STALE_LOCK_MS = 10_000

export function fileStore<S extends HeldState>(folder: string, { empty, parse, print }: StateCodec<S>): HeldStore<S> {
  const fileOf = (scope: string) => join(folder, `${encodeURIComponent(scope)}.json`)
  const load = async (scope: string): Promise<S> => {
    const file = fileOf(scope)
    const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      throw new RecordsError('STATE_UNREADABLE', `guard state ${file} cannot be read`, { cause: error })
    })
    return text === undefined ? empty : parse(text, file)
  }
  return {
    load,
    async list() {
      const files = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return []
        throw new RecordsError('STATE_UNREADABLE', `state folder ${folder} cannot be read`, { cause: error })
      })
      const scopes = files.filter((file) => file.endsWith('.json')).map((file) => decodeURIComponent(file.slice(0, -5)))
      return new Map(await Promise.all(scopes.map(async (scope) => [scope, await load(scope)] as const)))
    },
    async update(scope, change) {
      await makePrivateFolder(folder)
      const unlock = await lock(`${fileOf(scope)}.lock`)
      try {
        const state = await load(scope)
        const next = change(state)
        if (next !== state) await writePrivateFile(fileOf(scope), print(next))
        return next
      } finally {
        await unlock()
      }
    },
  }
}

async function lock(file: string): Promise<() => Promise<void>> {
  for (;;) {
    try {
      const handle = await open(file, 'wx', 0o600)
      await handle.close()
      return async () => rm(file, { force: true })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    const age = await stat(file).then(
      (info) => Date.now() - info.mtimeMs,
      () => 0,
    )
    if (age > STALE_LOCK_MS) await rm(file, { force: true })
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
