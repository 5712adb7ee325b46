/** Finds a running playground of this user and asks it. */
import { realpath } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { CommandError, EXIT, type Io } from '../../../command.ts'
import type { ControlAnswer } from './control-server.ts'
import type { ControlRequest } from './request.ts'
import { findRuns } from './run-folder.ts'

/** A reset waits until every host answers again. */
const DEADLINE_MS = 120_000

export async function askPlayground(
  io: Io,
  dataDir: string | undefined,
  request: ControlRequest,
): Promise<Extract<ControlAnswer, { ok: true }>> {
  const socket = await findSocket(dataDir)
  const answer = await post(io, socket, request)
  if (!answer.ok) throw new CommandError(answer.error, answer.code)
  return answer
}

async function findSocket(dataDir: string | undefined): Promise<string> {
  const runs = await findRuns()
  if (dataDir === undefined) {
    const [newest] = runs
    if (newest !== undefined) return newest.socket
    throw new CommandError('no playground is running; start one with: seamark playground')
  }
  const path = await realpath(dataDir).catch(() => dataDir)
  const found = runs.find((run) => run.dataDir === path)
  if (found !== undefined) return found.socket
  throw new CommandError(
    `no playground is running on ${dataDir}; start it with: seamark playground --data-dir ${dataDir}`,
  )
}

async function post(io: Io, socketPath: string, body: ControlRequest): Promise<ControlAnswer> {
  return new Promise((resolve, reject) => {
    const gone = (cause?: unknown): void =>
      reject(new CommandError('the playground does not answer; it is ending', EXIT.error, { cause }))
    const request = httpRequest(
      { socketPath, method: 'POST', path: '/', signal: io.signal, timeout: DEADLINE_MS },
      (response) => {
        let text = ''
        response.on('data', (part: Buffer) => (text += part.toString()))
        response.on('error', gone)
        response.on('end', () => {
          try {
            resolve(JSON.parse(text) as ControlAnswer)
          } catch (error) {
            gone(error)
          }
        })
      },
    )
    request.on('timeout', () => request.destroy())
    request.on('error', (error) => (io.signal.aborted ? reject(error) : gone(error)))
    request.end(JSON.stringify(body))
  })
}
