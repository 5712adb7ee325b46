/**
 * Requests to the manager, all of them GET to the same origin. A token is kept in memory only: no cookie, no storage. The first
 * request goes without one; an answer 401 asks for it.
 */
import { signal } from '@preact/signals'
import { parseJson } from './json.ts'

export class RequestError extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

const token = signal<string | undefined>(undefined)

/** Undefined: none is asked for. Else why one is. */
export const tokenWanted = signal<string | undefined>(undefined)

export function useToken(given: string): void {
  token.value = given
  tokenWanted.value = undefined
}

export function askForToken(message: string): void {
  token.value = undefined
  tokenWanted.value = message
}

/** The response of a request that succeeded. */
export async function request(
  path: string,
  { signal, headers = {} }: { signal?: AbortSignal; headers?: Record<string, string> } = {},
): Promise<Response> {
  const response = await fetch(path, {
    headers: { ...headers, ...(token.value !== undefined && { authorization: `Bearer ${token.value}` }) },
    cache: 'no-store',
    credentials: 'omit',
    redirect: 'error',
    ...(signal !== undefined && { signal }),
  })
  if (response.ok) return response
  const { code, message } = await readFault(response)
  if (response.status === 401)
    askForToken(token.value === undefined ? 'This page needs a token.' : 'The token is not valid, or has expired.')
  throw new RequestError(response.status, code, message)
}

export async function requestJson<T>(path: string, signal?: AbortSignal): Promise<T> {
  const response = await request(path, signal === undefined ? {} : { signal })
  return parseJson(await response.text()) as T
}

async function readFault(response: Response): Promise<{ code: string; message: string }> {
  const fallback = { code: String(response.status), message: `the manager answered with status ${response.status}` }
  const text = await response.text().catch(() => '')
  try {
    const { code, message } = parseJson(text) as { code?: unknown; message?: unknown }
    return typeof code === 'string' && typeof message === 'string' ? { code, message } : fallback
  } catch {
    return fallback
  }
}
