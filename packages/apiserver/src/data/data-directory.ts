/**
 * The objects of all logical clusters on disk, in a LevelDB (classic-level), and the credentials beside it.
 *
 * Flow: changes are appended in memory; one commit with fsync at a time writes everything appended meanwhile, so that
 * concurrent writers share its cost.
 * Guarantees: a commit is atomic and commits are in revision order, so after a crash the directory contains a prefix of
 * the changes, with every acknowledged one. After a failed commit nothing more is written: `failed` is called, and the
 * process has to end, because its memory is ahead of the disk.
 */
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { makePrivateFolder } from '@seamark/kube/private-file'
import { ClassicLevel } from 'classic-level'
import type { ApiObject } from '../codec/object-shape.ts'
import type { Durability, RestoredObject } from '../store/durability.ts'
import { Stored } from '../store/stored-object.ts'
import { DataDirectoryError } from './data-directory-error.ts'

/** Of the layout below; a directory with a higher number is refused. */
const DATA_FORMAT = 1

const FORMAT_KEY = 'format'
const REVISION_PREFIX = 'revision\0'
const OBJECT_PREFIX = 'object\0'

type Database = ClassicLevel<string, Buffer>
type Operation = { type: 'put'; key: string; value: Buffer } | { type: 'del'; key: string }

/** The state of one logical cluster before the restart. */
export interface RestoredCluster {
  readonly revision: number
  /** In revision order. */
  readonly objects: readonly RestoredObject[]
}

export class DataDirectory {
  readonly path: string
  readonly #database: Database
  readonly #restored: ReadonlyMap<string, RestoredCluster>
  #onFailure: (error: DataDirectoryError) => void = () => undefined
  #waiting: Operation[] = []
  #revisions = new Map<string, number>()
  /** The commit in progress, and the one that will write `#waiting`. */
  #running: Promise<void> | undefined
  #next: Promise<void> | undefined
  #failure: DataDirectoryError | undefined

  private constructor(path: string, database: Database, restored: ReadonlyMap<string, RestoredCluster>) {
    this.path = path
    this.#database = database
    this.#restored = restored
  }

  /** Throws DataDirectoryError with what to do. */
  static async open(path: string): Promise<DataDirectory> {
    const folder = join(path, 'objects')
    try {
      await makePrivateFolder(path)
      await chmod(path, 0o700)
    } catch (cause) {
      throw new DataDirectoryError(`${path} cannot be used: ${messageOf(cause)}`, { cause })
    }
    const database: Database = new ClassicLevel(folder, { keyEncoding: 'utf8', valueEncoding: 'buffer' })
    try {
      await database.open()
      await checkFormat(database, path)
      return new DataDirectory(path, database, await restore(database, path))
    } catch (error) {
      await database.close().catch(() => undefined)
      throw error instanceof DataDirectoryError
        ? error
        : new DataDirectoryError(openProblem(path, error), { cause: error })
    }
  }

  restored(cluster: string): RestoredCluster | undefined {
    return this.#restored.get(cluster)
  }

  /** `listener` is called at most once. */
  whenFailed(listener: (error: DataDirectoryError) => void): void {
    this.#onFailure = listener
    if (this.#failure !== undefined) listener(this.#failure)
  }

  durabilityOf(cluster: string): Durability {
    return {
      append: (collection, key, stored, revision) => {
        const at = `${OBJECT_PREFIX}${cluster}\0${collection}\0${key}`
        this.#waiting.push(
          stored === undefined ? { type: 'del', key: at } : { type: 'put', key: at, value: encode(stored) },
        )
        this.#revisions.set(cluster, revision)
        this.#schedule()
      },
      pending: () => this.#next ?? this.#running,
    }
  }

  #schedule(): void {
    if (this.#next !== undefined) return
    const before = this.#running
    const next = (before ?? Promise.resolve()).then(async () => {
      this.#running = next
      this.#next = undefined
      await this.#commit()
      if (this.#running === next) this.#running = undefined
    })
    next.catch(() => undefined)
    this.#next = next
  }

  async #commit(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    const operations = this.#waiting
    for (const [cluster, revision] of this.#revisions) {
      const value = Buffer.from(String(revision))
      operations.push({ type: 'put', key: `${REVISION_PREFIX}${cluster}`, value })
    }
    this.#waiting = []
    this.#revisions = new Map()
    try {
      await this.#database.batch(operations, { sync: true })
    } catch (cause) {
      this.#failure = new DataDirectoryError(
        `${this.path} cannot be written: ${messageOf(cause)}; free space or repair the disk, then start again: nothing that was acknowledged is lost`,
        { cause },
      )
      this.#onFailure(this.#failure)
      throw this.#failure
    }
  }

  async close(): Promise<void> {
    await (this.#next ?? this.#running)?.catch(() => undefined)
    await this.#database.close()
  }
}

/** A line of JSON with what the body does not contain, then the body. */
function encode({ resourceVersion, apiVersion, kind, isStale, body }: Stored): Buffer {
  const head = JSON.stringify({ resourceVersion, apiVersion, kind, ...(isStale && { isStale }) })
  return Buffer.concat([Buffer.from(`${head}\n`), body])
}

function decode(key: string, value: Buffer): Stored {
  const end = value.indexOf(0x0a)
  const head = JSON.parse(value.toString('utf8', 0, end)) as Record<string, unknown>
  const { resourceVersion, apiVersion, kind, isStale } = head
  const object = JSON.parse(`{${value.toString('utf8', end + 1)}`) as ApiObject
  if (typeof resourceVersion !== 'number') throw new Error('it has no resourceVersion')
  const named = { apiVersion: String(apiVersion), kind: String(kind), ...object }
  return new Stored(key, resourceVersion, named, isStale === true)
}

async function checkFormat(database: Database, path: string): Promise<void> {
  const stored = await database.get(FORMAT_KEY)
  if (stored === undefined) {
    await database.put(FORMAT_KEY, Buffer.from(String(DATA_FORMAT)), { sync: true })
    return
  }
  const format = Number(stored.toString())
  if (format === DATA_FORMAT) return
  throw new DataDirectoryError(
    `${path} has format ${stored.toString()}, this version reads format ${DATA_FORMAT}: use the version that wrote it, or another directory`,
  )
}

async function restore(database: Database, path: string): Promise<Map<string, RestoredCluster>> {
  const clusters = new Map<string, { revision: number; objects: RestoredObject[] }>()
  for await (const [key, value] of database.iterator({ gte: REVISION_PREFIX, lt: `${REVISION_PREFIX}\uffff` }))
    clusters.set(key.slice(REVISION_PREFIX.length), { revision: Number(value.toString()), objects: [] })
  for await (const [key, value] of database.iterator({ gte: OBJECT_PREFIX, lt: `${OBJECT_PREFIX}\uffff` })) {
    const [, cluster = '', collection = '', objectKey = ''] = key.split('\0')
    try {
      clusters.get(cluster)?.objects.push({ collection, stored: decode(objectKey, value) })
    } catch (cause) {
      throw new DataDirectoryError(
        `${path}: ${collection} ${objectKey} cannot be read: ${messageOf(cause)}; restore the directory from a backup`,
        { cause },
      )
    }
  }
  for (const { objects } of clusters.values())
    objects.sort((a, b) => a.stored.resourceVersion - b.stored.resourceVersion)
  return clusters
}

function openProblem(path: string, error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const code = (cause as { code?: unknown } | undefined)?.code
  if (code === 'LEVEL_LOCKED') return `${path} is in use by another process; end it, or name another directory`
  if (code === 'LEVEL_CORRUPTION')
    return `${path} is damaged: ${messageOf(cause)}; restore it from a backup, or start with an empty directory`
  return `${path} cannot be opened: ${messageOf(cause)}`
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
