/**
 * A request and its response, independent of the transport: the listener (http/http-server.ts) and the in-process client
 * (http/in-process.ts) both use these types, so a test without sockets sees what kubectl sees.
 */
import type { Status } from '@seamark/kube/object'

export interface UserInfo {
  readonly name: string
  readonly uid?: string
  readonly groups: readonly string[]
  readonly extra?: Readonly<Record<string, readonly string[]>>
}

/** `unverified`: the client certificate is not signed by the CA of the server. */
export type PeerIdentity = UserInfo | 'unverified'

/** A request without its body: enough to authenticate and to authorize it. */
export interface RequestHead {
  readonly method: string
  /** Path without the query, percent-encoded as it came. */
  readonly path: string
  readonly query: URLSearchParams
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Identity from the transport: the subject of a verified client certificate, or the in-process caller. */
  readonly identity?: PeerIdentity
}

export interface ApiRequest extends RequestHead {
  readonly body: Buffer
}

/**
 * An authorized request that waits for its body. Rejects only with `DroppedResponse`: the transport then aborts the
 * connection.
 */
export type Admitted = (body: Buffer) => Promise<ApiResponse>

/**
 * The first half of a request: authentication and authorization. A response is final and the body is not read; otherwise
 * the function takes the body.
 */
export type Admit = (head: RequestHead) => ApiResponse | Admitted

/** Output stream of a watch. */
export interface WatchSink {
  write(chunk: Buffer): void
  /** Bytes written and not yet received by the client. */
  readonly bufferedBytes: number
  end(): void
  /** Ends without a last chunk: the client sees a broken stream. */
  abort(): void
}

export interface WholeResponse {
  readonly kind: 'whole'
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[]>>
  readonly body: readonly Buffer[]
}

interface StreamResponse {
  readonly kind: 'stream'
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[]>>
  /** Starts the stream; the returned function stops it and must be called when the client disconnects. */
  start(sink: WatchSink): () => void
}

export type ApiResponse = WholeResponse | StreamResponse

export function textResponse(status: number, text: string): WholeResponse {
  const headers = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' }
  return { kind: 'whole', status, headers, body: [Buffer.from(text)] }
}

export function jsonResponse(
  status: number,
  value: unknown,
  headers: Record<string, string | string[]> = {},
): WholeResponse {
  return {
    kind: 'whole',
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: [Buffer.from(JSON.stringify(value))],
  }
}

export function statusResponse(status: Status, headers: Record<string, string | string[]> = {}): WholeResponse {
  return jsonResponse(status.code ?? 200, status, headers)
}
