/**
 * Files with credentials or state, readable only by the user of this process. A file is written to a temporary name
 * with mode 0600 and renamed: the wider mode of an older file is not kept, a symbolic link is replaced and never
 * followed, and a reader sees the old or the new text, never a part.
 */
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, mkdir, open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/** Rejects if `path` exists and is neither a regular file nor a symbolic link, and with errors of the file system. */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  const present = await lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (present !== undefined && !present.isFile() && !present.isSymbolicLink())
    throw new Error(`${path} is not a regular file; name another one`)
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`)
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
  const file = await open(temporary, flags, 0o600)
  try {
    await file.writeFile(text, 'utf8')
    await file.close()
    await rename(temporary, path)
  } catch (error) {
    await file.close().catch(() => undefined)
    await rm(temporary, { force: true })
    throw error
  }
}

/** Created folders get mode 0700; an existing one keeps its mode. */
export async function makePrivateFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
}
