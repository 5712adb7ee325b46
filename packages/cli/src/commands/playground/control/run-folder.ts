/**
 * The folder of one running playground, below the folder of temporary files: its kubeconfig, the configuration of its manager
 * and the control socket. It is removed when the process ends; what is left of a process that was killed is removed by the next
 * playground.
 *
 * Guarantee: only folders that belong to this user and that nobody else may read are opened.
 */
import { readdirSync, rmSync } from 'node:fs'
import { lstat, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writePrivateFile } from '@seamark/kube/private-file'

const PREFIX = 'seamark-playground-'
const FACTS = 'playground.json'

interface RunFacts {
  readonly pid: number
  /** ms since the epoch. */
  readonly startedAt: number
  /** Real path of `--data-dir`. */
  readonly dataDir?: string
}

export interface FoundRun extends RunFacts {
  readonly folder: string
  readonly socket: string
}

const socketOf = (folder: string): string => join(folder, 'control')

export class RunFolder {
  readonly path: string
  readonly #onExit: () => void

  private constructor(path: string) {
    this.path = path
    // Also when a second signal ends the process at once.
    this.#onExit = () => rmSync(path, { recursive: true, force: true })
    process.once('exit', this.#onExit)
  }

  static async create(dataDir: string | undefined): Promise<RunFolder> {
    await removeAbandoned()
    // mkdtemp gives it mode 0700.
    const folder = new RunFolder(await mkdtemp(join(tmpdir(), PREFIX)))
    const facts: RunFacts = { pid: process.pid, startedAt: Date.now(), ...(dataDir !== undefined && { dataDir }) }
    await writePrivateFile(join(folder.path, FACTS), JSON.stringify(facts))
    return folder
  }

  get socket(): string {
    return socketOf(this.path)
  }

  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true })
    process.off('exit', this.#onExit)
  }
}

/** Newest first. */
export async function findRuns(): Promise<FoundRun[]> {
  const runs: FoundRun[] = []
  for (const folder of candidates()) {
    const facts = await readFacts(folder)
    if (facts !== undefined && isRunning(facts.pid)) runs.push({ ...facts, folder, socket: socketOf(folder) })
  }
  return runs.sort((a, b) => b.startedAt - a.startedAt)
}

async function removeAbandoned(): Promise<void> {
  for (const folder of candidates()) {
    const facts = await readFacts(folder)
    if (facts !== undefined && !isRunning(facts.pid)) await rm(folder, { recursive: true, force: true })
  }
}

function candidates(): string[] {
  return readdirSync(tmpdir())
    .filter((name) => name.startsWith(PREFIX))
    .map((name) => join(tmpdir(), name))
}

/** Undefined: it is not ours, or not a playground's. */
async function readFacts(folder: string): Promise<RunFacts | undefined> {
  try {
    const found = await lstat(folder)
    if (!found.isDirectory() || (found.mode & 0o077) !== 0 || found.uid !== process.getuid?.()) return undefined
    const { pid, startedAt, dataDir } = JSON.parse(await readFile(join(folder, FACTS), 'utf8')) as Partial<RunFacts>
    if (pid === undefined || startedAt === undefined) return undefined
    return { pid, startedAt, ...(dataDir !== undefined && { dataDir }) }
  } catch {
    // It is just being made, or removed.
    return undefined
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
