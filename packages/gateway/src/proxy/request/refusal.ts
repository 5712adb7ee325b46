/** Answers on connections of HTTP/1 for what is not a request that a server hands out: octets that cannot be parsed, CONNECT, upgrades. */
import type { Duplex } from 'node:stream'

export const STATUS_TEXTS: Readonly<Record<number, string>> = {
  101: 'Switching Protocols',
  400: 'Bad Request',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  413: 'Payload Too Large',
  421: 'Misdirected Request',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  505: 'HTTP Version Not Supported',
}

/** Where there is no response object: before a request is read, and after HTTP has ended. */
export function refuse(socket: Duplex, status: number): void {
  if (!socket.writable) return void socket.destroy()
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_TEXTS[status] ?? 'Error'}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`,
    () => socket.destroy(),
  )
}

/** The status of octets that Node's parser refuses. */
export function statusOfFault(error: Error): number {
  const { code, reason } = error as { readonly code?: string; readonly reason?: string }
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return 431
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return 413
    // The same code stands for a line that does not end after the version.
    case 'HPE_INVALID_VERSION':
      return reason?.startsWith('Invalid HTTP version') === true ? 505 : 400
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return 408
    // Both stand for a length beside a coding, too, which comes second if the coding is not known.
    case 'HPE_INVALID_TRANSFER_ENCODING':
      return reason?.includes('Content-Length') === true && hasOnlyChunks(error) ? 400 : 501
    case 'HPE_INVALID_CONTENT_LENGTH':
      return reason?.includes('Transfer-Encoding') === true && !hasOnlyChunks(error) ? 501 : 400
    case undefined:
    default:
      return 400
  }
}

/** Whether the request that cannot be read has the coding `chunked`, as far as its header is in the packet with the fault. */
function hasOnlyChunks(error: Error): boolean {
  const { rawPacket, bytesParsed = 0 } = error as { readonly rawPacket?: Buffer; readonly bytesParsed?: number }
  const text = rawPacket?.toString('latin1') ?? ''
  const start = text.lastIndexOf('\r\n\r\n', Math.max(0, bytesParsed - 1))
  const end = text.indexOf('\r\n\r\n', bytesParsed)
  const header = text.slice(start < 0 ? 0 : start, end < 0 ? text.length : end)
  const codings = [...header.matchAll(/^transfer-encoding:[\t ]*(.*?)[\t ]*$/gim)].map(([, coding = '']) => coding)
  return codings.length === 0 || codings.join().toLowerCase() === 'chunked'
}

/** What CONNECT and unreadable octets of a client of HTTP/1 get. */
export function refuseConnect(socket: Duplex): void {
  socket.on('error', () => socket.destroy())
  refuse(socket, 405)
}
