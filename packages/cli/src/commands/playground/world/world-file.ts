/** `world.json` in the folder of `--data-dir`: what a later run has to have again, so that addresses stay. */
import { readFile, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '@seamark/kube'
import { makePrivateFolder, writePrivateFile } from '@seamark/kube/private-file'
import { CommandError } from '../../../command.ts'

export interface WorldFile {
  /** Of the API servers, by cluster. */
  readonly apiPorts: Readonly<Record<string, number>>
  readonly gatewayPort: number
  readonly dnsPort: number
  readonly doorPort: number
  /** Of the TSIG key. */
  readonly secret: string
  /** False: a process that was killed was still making the world. */
  readonly isComplete: boolean
}

const NAME = 'world.json'
/** 53 needs rights, 5353 is the port of mDNS. */
const FIRST_DNS_PORT = 8053

export const newWorldFile = (secret: string): WorldFile => ({
  apiPorts: {},
  gatewayPort: 0,
  dnsPort: FIRST_DNS_PORT,
  doorPort: 0,
  secret,
  isComplete: false,
})

/** Undefined: the folder is empty, or there is none yet. Throws when it is something else. */
export async function readWorldFile(folder: string): Promise<WorldFile | undefined> {
  const text = await readFile(join(folder, NAME), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw unusable(folder, messageOf(error))
  })
  if (text !== undefined) return parse(folder, text)
  if ((await contentOf(folder)).length > 0)
    throw unusable(folder, 'it has other files than those of a playground; name an empty folder')
  return undefined
}

export async function writeWorldFile(folder: string, file: WorldFile): Promise<void> {
  await writePrivateFile(join(folder, NAME), `${JSON.stringify(file)}\n`)
}

/** For a new world. Refuses a folder that is no playground's. */
export async function emptyWorldFolder(folder: string): Promise<void> {
  if ((await contentOf(folder)).length === 0) return
  await readWorldFile(folder).catch((error: unknown) => {
    if (error instanceof CommandError && !error.message.includes('is damaged')) throw error
  })
  for (const name of await contentOf(folder)) await rm(join(folder, name), { recursive: true, force: true })
}

export async function makeWorldFolder(folder: string): Promise<void> {
  await makePrivateFolder(folder).catch((error: unknown) => {
    throw unusable(folder, messageOf(error))
  })
}

async function contentOf(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw unusable(folder, messageOf(error))
  })
}

function parse(folder: string, text: string): WorldFile {
  try {
    const { apiPorts, gatewayPort, dnsPort, doorPort, secret, isComplete } = JSON.parse(text) as Partial<WorldFile>
    if (typeof apiPorts === 'object' && typeof secret === 'string')
      return {
        apiPorts,
        gatewayPort: Number(gatewayPort),
        dnsPort: Number(dnsPort),
        doorPort: Number(doorPort),
        secret,
        isComplete: isComplete === true,
      }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
  }
  throw unusable(folder, `${NAME} is damaged; --fresh starts anew`)
}

function unusable(folder: string, why: string): CommandError {
  return new CommandError(`--data-dir ${folder}: ${why}`)
}
