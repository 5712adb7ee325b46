/**
 * The credentials of a server with a data directory: its CA, the token of the administrator, and the keys that sign
 * ServiceAccount tokens. A kubeconfig and issued tokens stay valid over restarts.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writePrivateFile } from '@seamark/kube/private-file'
import { newToken } from '../http/credentials.ts'
import { createServingAuthority, type ServingAuthority } from '../http/serving-certificate.ts'
import { DataDirectoryError } from './data-directory-error.ts'

/** The CA cannot be replaced without a new kubeconfig for every client. */
const AUTHORITY_DAYS = 3650

export interface Credentials {
  readonly authority: ServingAuthority
  readonly adminToken: string
  /** Of one logical cluster; created when it is new. */
  tokenKey(cluster: string): Promise<KeyObject>
}

interface Content {
  readonly authority: ServingAuthority
  readonly adminToken: string
  readonly tokenKeys: Record<string, string>
}

export async function openCredentials(folder: string, nowMs: number): Promise<Credentials> {
  const path = join(folder, 'credentials.json')
  let content = await read(path)
  if (content === undefined) {
    content = { authority: createServingAuthority(nowMs, AUTHORITY_DAYS), adminToken: newToken(), tokenKeys: {} }
    await write(path, content)
  }
  const { authority, adminToken, tokenKeys } = content
  return {
    authority,
    adminToken,
    async tokenKey(cluster) {
      const known = tokenKeys[cluster]
      if (known !== undefined) return createPrivateKey(known)
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      tokenKeys[cluster] = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
      await write(path, { authority, adminToken, tokenKeys })
      return privateKey
    },
  }
}

async function read(path: string): Promise<Content | undefined> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw new DataDirectoryError(`${path} cannot be read: ${error.message}`, { cause: error })
  })
  if (text === undefined) return undefined
  try {
    const content = JSON.parse(text) as Content
    createPrivateKey(content.authority.keyPem)
    return content
  } catch {
    // The parser's message would quote the file.
    throw new DataDirectoryError(
      `${path} is damaged; restore it from a backup, or delete it: every client then needs a new kubeconfig`,
    )
  }
}

async function write(path: string, content: Content): Promise<void> {
  try {
    await writePrivateFile(path, JSON.stringify(content))
  } catch (cause) {
    throw new DataDirectoryError(`${path} cannot be written: ${(cause as Error).message}`, { cause })
  }
}
