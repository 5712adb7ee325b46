/**
 * The control socket of a running playground: one POST with a request in JSON, one answer. The socket has mode 0600 in a folder
 * with mode 0700: only the user who started the playground reaches it.
 */
import { chmod } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import { messageOf } from '@seamark/kube'
import { CommandError, EXIT, type ExitCode } from '../../../command.ts'
import type { ControlRequest } from './request.ts'

/** A request is a line of a command. */
const MAX_REQUEST_BYTES = 64 * 1024

export type ControlAnswer =
  | { readonly ok: true; readonly text: string; readonly value?: unknown }
  | { readonly ok: false; readonly error: string; readonly code: ExitCode }

export interface ControlServer {
  close(): Promise<void>
}

export async function openControl(
  socket: string,
  carryOut: (request: ControlRequest) => Promise<{ readonly text: string; readonly value?: unknown }>,
): Promise<ControlServer> {
  const server = createServer((request, response) => {
    const answer = (value: ControlAnswer): void => {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(value))
    }
    readBody(request)
      .then(async (body) => carryOut(JSON.parse(body) as ControlRequest))
      .then((done) => answer({ ok: true, ...done }))
      .catch((error: unknown) =>
        answer({ ok: false, error: messageOf(error), code: error instanceof CommandError ? error.code : EXIT.error }),
      )
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause) =>
      reject(
        new CommandError(`the control socket ${socket} cannot be opened: ${cause.message}`, EXIT.error, { cause }),
      ),
    )
    server.listen(socket, resolve)
  })
  await chmod(socket, 0o600)
  return {
    async close() {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  let body = ''
  for await (const part of request) {
    body += String(part)
    if (body.length > MAX_REQUEST_BYTES) throw new CommandError('the request is too long', EXIT.usage)
  }
  return body
}
