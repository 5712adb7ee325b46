/**
 * A zone in a folder of its own: `snapshot`, the journals `journal-1`, `journal-2`, … of later changes, and `incomplete`, an
 * empty file, as long as nothing may be answered from it.
 *
 * Flow: `load` replays what is there and starts a new journal; `append` writes one frame and waits for the disk; when the
 * journals have grown beyond the snapshot, a new snapshot is written beside and the older journals are deleted.
 * Guarantees: a change is on disk before `append` resolves. After kill -9, or a power failure, at any point the next `load`
 * has every acknowledged change and none of the others. A failed write (disk full, read-only file system) leaves the stored
 * zone as it was. A process that finds a newer journal of another process stops writing (STORE_TAKEN).
 */
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate as giveWay } from 'node:timers/promises'
import { DnsError } from '../error.ts'
import type { Fqdn } from '../wire/name.ts'
import { serialOf } from '../zone/soa.ts'
import type { ZoneDelta } from '../zone/zone-delta.ts'
import type { Zone } from '../zone/zone-table.ts'
import { replay } from './replay.ts'
import { deltaFrame, headFrame, snapshotFrames } from './zone-frames.ts'
import type { StoredZone, ZoneStore } from './zone-store.ts'

export interface FolderStoreOptions {
  /** The folder of all zones; created when absent. */
  readonly folder: string
  readonly origin: Fqdn
  /** A torn journal end was dropped, or a new snapshot could not be written. */
  readonly onWarning?: (message: string) => void
  /** Octets of journals from which a new snapshot is written, if it is also more than the snapshot has. @default 1 MiB */
  readonly compactOctets?: number
}

const COMPACT_OCTETS = 1 << 20
const JOURNAL = /^journal-(\d+)$/

/** A file name for any zone: escapes and slashes of odd names cannot leave the folder. */
const folderOf = (origin: Fqdn): string => (origin === '.' ? '@' : encodeURIComponent(origin.slice(0, -1)))

function writeError(what: string, cause: unknown): DnsError {
  if (cause instanceof DnsError) return cause
  const why = cause instanceof Error ? cause.message : String(cause)
  return new DnsError('STORE_WRITE', `${what}: ${why}`, { cause })
}

interface Journal {
  readonly number: number
  readonly handle: FileHandle
  /** Octets that are known to be on disk. */
  length: number
}

export class FolderStore implements ZoneStore {
  readonly #folder: string
  readonly #origin: Fqdn
  readonly #onWarning: (message: string) => void
  readonly #compactOctets: number
  #journal: Journal | undefined
  /** Number of the newest journal of this process. */
  #number = 0
  #snapshotOctets = 0
  #journalOctets = 0
  #compaction: Promise<void> | undefined
  #isComplete = true

  constructor(options: FolderStoreOptions) {
    this.#origin = options.origin
    this.#folder = join(options.folder, folderOf(options.origin))
    this.#onWarning = options.onWarning ?? (() => {})
    this.#compactOctets = options.compactOctets ?? COMPACT_OCTETS
  }

  /** False: nothing may be answered from what is stored, because records are missing. */
  get isComplete(): boolean {
    return this.#isComplete
  }

  /** Before the first `replace` of a zone that has none of its records yet. */
  startIncomplete(): void {
    this.#isComplete = false
  }

  async markComplete(): Promise<void> {
    if (this.#isComplete) return
    try {
      await rm(this.#incompletePath, { force: true })
      await syncFolder(this.#folder)
    } catch (cause) {
      throw writeError(`zone ${this.#origin} cannot be marked as complete in ${this.#folder}`, cause)
    }
    this.#isComplete = true
  }

  get #incompletePath(): string {
    return join(this.#folder, 'incomplete')
  }

  async load(): Promise<StoredZone | undefined> {
    const numbers = await this.#journalNumbers()
    this.#number = numbers.at(-1) ?? 0
    const snapshot = await readFile(join(this.#folder, 'snapshot')).catch((cause: NodeJS.ErrnoException) => {
      if (cause.code === 'ENOENT') return undefined
      throw this.#unreadable(cause)
    })
    if (snapshot === undefined) return undefined
    const journals: Buffer[] = []
    for (const number of numbers) {
      journals.push(
        await readFile(this.#pathOf(number)).catch((cause: unknown) => {
          throw this.#unreadable(cause)
        }),
      )
    }
    try {
      const { zone, deltas, droppedOctets } = replay(this.#origin, snapshot, journals)
      if (droppedOctets > 0)
        this.#onWarning(`${this.#folder}: ${droppedOctets} octets of an unfinished write were dropped`)
      this.#snapshotOctets = snapshot.length
      this.#journalOctets = journals.reduce((sum, { length }) => sum + length, 0)
      this.#isComplete = (await stat(this.#incompletePath).catch(() => undefined)) === undefined
      return { zone, deltas }
    } catch (error) {
      if (!(error instanceof DnsError)) throw error
      throw new DnsError(error.code, `${this.#folder} cannot be read: ${error.message}`, { cause: error })
    }
  }

  #unreadable(cause: unknown): DnsError {
    const why = cause instanceof Error ? cause.message : String(cause)
    return new DnsError('STORE_CORRUPT', `${this.#folder} cannot be read: ${why}`, { cause })
  }

  async append(delta: ZoneDelta, zone: Zone): Promise<void> {
    const frame = deltaFrame(delta)
    try {
      const journal = this.#journal ?? (await this.#startJournal(serialOf(delta.before.data)))
      await this.#checkOwner()
      await writeAll(journal.handle, frame, journal.length)
      await journal.handle.datasync()
      journal.length += frame.length
      this.#journalOctets += frame.length
    } catch (cause) {
      await this.#abandonJournal()
      throw writeError(`the change of zone ${this.#origin} cannot be written to ${this.#folder}`, cause)
    }
    if (this.#journalOctets > Math.max(this.#compactOctets, this.#snapshotOctets)) await this.#compact(zone)
  }

  async replace(zone: Zone): Promise<void> {
    await this.#compaction
    try {
      await this.#checkOwner()
      await mkdir(this.#folder, { recursive: true })
      if (!this.#isComplete) await writeFile(this.#incompletePath, '')
      // Its head records that nothing of the older journals follows this version, should a crash leave them behind.
      const { number } = await this.#startJournal(zone.serial)
      await this.#writeSnapshot(zone)
      await this.#deleteJournals(number - 1)
      this.#journalOctets = 0
    } catch (cause) {
      throw writeError(`zone ${this.#origin} cannot be written to ${this.#folder}`, cause)
    }
  }

  async close(): Promise<void> {
    await this.#compaction
    await this.#closeJournal().catch((error: unknown) => this.#onWarning(String(error)))
  }

  async #journalNumbers(): Promise<number[]> {
    const files = await readdir(this.#folder).catch((cause: NodeJS.ErrnoException) => {
      if (cause.code === 'ENOENT') return []
      throw this.#unreadable(cause)
    })
    return files
      .flatMap((file) => JOURNAL.exec(file)?.[1] ?? [])
      .map(Number)
      .sort((a, b) => a - b)
  }

  #pathOf(number: number): string {
    return join(this.#folder, `journal-${number}`)
  }

  /** A later start of another process begins a journal with a higher number. */
  async #checkOwner(): Promise<void> {
    const newer = await stat(this.#pathOf(this.#number + 1)).catch(() => undefined)
    if (newer === undefined) return
    throw new DnsError(
      'STORE_TAKEN',
      `another process writes to ${this.#folder}; give every process a folder of its own`,
    )
  }

  /** `base` is the serial that its first change starts from. */
  async #startJournal(base: number): Promise<Journal> {
    await this.#closeJournal()
    const number = this.#number + 1
    const handle = await open(this.#pathOf(number), 'wx').catch((cause: NodeJS.ErrnoException) => {
      if (cause.code !== 'EEXIST') throw cause
      throw new DnsError(
        'STORE_TAKEN',
        `another process writes to ${this.#folder}; give every process a folder of its own`,
      )
    })
    this.#number = number
    const journal = { number, handle, length: 0 }
    this.#journal = journal
    const head = headFrame(this.#origin, base)
    await writeAll(handle, head, 0)
    await handle.datasync()
    await syncFolder(this.#folder)
    journal.length = head.length
    return journal
  }

  /** What was written after the last acknowledged octet must not count: the next change starts another journal. */
  async #abandonJournal(): Promise<void> {
    const journal = this.#journal
    this.#journal = undefined
    if (journal === undefined) return
    await journal.handle.truncate(journal.length).catch(() => {})
    await journal.handle.close().catch(() => {})
  }

  async #closeJournal(): Promise<void> {
    const journal = this.#journal
    this.#journal = undefined
    await journal?.handle.close()
  }

  /** Changes go to a new journal from here on; the snapshot is written in the background. */
  async #compact(zone: Zone): Promise<void> {
    if (this.#compaction !== undefined) return
    const warn = (error: unknown) =>
      // The journals are still there: nothing is lost, and the next change beyond the limit tries again.
      this.#onWarning(writeError(`no new snapshot of zone ${this.#origin} in ${this.#folder}`, error).message)
    try {
      const { number } = await this.#startJournal(zone.serial)
      this.#journalOctets = 0
      this.#compaction = (async () => {
        await this.#writeSnapshot(zone)
        await this.#deleteJournals(number - 1)
      })()
        .catch(warn)
        .finally(() => (this.#compaction = undefined))
    } catch (error) {
      await this.#abandonJournal()
      warn(error)
    }
  }

  async #writeSnapshot(zone: Zone): Promise<void> {
    const draft = join(this.#folder, 'snapshot.new')
    const handle = await open(draft, 'w')
    let length = 0
    try {
      for (const frame of snapshotFrames(zone)) {
        await writeAll(handle, frame, length)
        length += frame.length
        await giveWay()
      }
      await handle.datasync()
    } finally {
      await handle.close()
    }
    await rename(draft, join(this.#folder, 'snapshot'))
    await syncFolder(this.#folder)
    this.#snapshotOctets = length
  }

  async #deleteJournals(upTo: number): Promise<void> {
    for (const number of await this.#journalNumbers())
      if (number <= upTo) await rm(this.#pathOf(number), { force: true })
  }
}

async function writeAll(handle: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    const { bytesWritten } = await handle.write(bytes, at, bytes.length - at, position + at)
    at += bytesWritten
  }
}

/** So that a new or renamed file is found after a power failure. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
