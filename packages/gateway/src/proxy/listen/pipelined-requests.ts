/**
 * Requests that a client of HTTP/1 sends ahead, and bodies in chunks: they are parsed in small parts, one request after another.
 * Node would parse all that a packet has in one turn of the event loop, which may be thousands of requests, or of chunks.
 *
 * Place: between the socket and Node's parser, from the first such request on. Others cost nothing.
 */
import type { Socket } from 'node:net'

const HEADER_END = '\r\n\r\n'
/** Octets of a body that are parsed at once. */
const PART = 4_096
const PARTS_OF_TURN = 4
/** A part with so many lines may have as many chunks, and is the only one of its turn. */
const MANY_LINES = 256
/** Octets that are read ahead: so the end of a connection is noticed while an answer is waited for. */
const MAX_AHEAD = 65_536

interface Reading {
  readonly socket: Socket
  readonly parse: (octets: Buffer) => void
  readonly onData: (octets: Buffer) => void
  readonly onResume: () => void
  readonly resume: () => Socket
  /** Received and not parsed. */
  readonly rest: Buffer[]
  octets: number
  /** Nothing is parsed. */
  isHeld: boolean
  /** Nothing is read. */
  isStopped: boolean
}

const readings = new WeakMap<object, Reading>()
const unanswered = new WeakMap<object, number>()

/** Whether the first octets of a connection may be more than one request. */
export function hasSeveral(octets: Buffer): boolean {
  const end = octets.indexOf(HEADER_END)
  return octets.length > PART || (end >= 0 && octets.includes(HEADER_END, end + HEADER_END.length))
}

/** After a server of HTTP/1 was given the connection. */
export function readInParts(socket: Socket): void {
  const [listener] = socket.listeners('data') as ((octets: Buffer) => void)[]
  if (listener === undefined || readings.has(socket)) return
  const reading: Reading = {
    socket,
    parse: listener.bind(socket),
    onData(octets) {
      reading.rest.push(octets)
      reading.octets += octets.length
      read(reading)
    },
    onResume: () => read(reading),
    resume: socket.resume.bind(socket),
    rest: [],
    octets: 0,
    isHeld: false,
    isStopped: false,
  }
  readings.set(socket, reading)
  socket.off('data', listener).on('data', reading.onData).on('resume', reading.onResume)
  // Node stops and resumes the socket for the body of the current request.
  socket.resume = () => (reading.isStopped ? socket : reading.resume())
}

/** A request begins; its end is told by `endRequest`. */
export function beginRequest(socket: Socket, hasChunks: boolean): void {
  const before = unanswered.get(socket) ?? 0
  unanswered.set(socket, before + 1)
  if (before > 0 || hasChunks) readInParts(socket)
}

export function endRequest(socket: Socket): void {
  unanswered.set(socket, (unanswered.get(socket) ?? 1) - 1)
  const reading = readings.get(socket)
  if (reading?.isHeld === true) setImmediate(() => release(reading))
}

/** The connection is no longer one of requests. @returns `head` and what was received behind it */
export function endReading(socket: Socket, head: Buffer): Buffer {
  const reading = readings.get(socket)
  if (reading === undefined) return head
  readings.delete(socket)
  socket.off('data', reading.onData).off('resume', reading.onResume)
  socket.resume = reading.resume
  return Buffer.concat([head, ...reading.rest.splice(0)])
}

function read(reading: Reading): void {
  const { socket, rest, parse } = reading
  let isBody = false
  for (let parts = 0; rest.length > 0 && !reading.isHeld && !socket.destroyed && !socket.isPaused(); parts++) {
    const before = unanswered.get(socket) ?? 0
    if (before > 1) reading.isHeld = true
    else if (parts === PARTS_OF_TURN) {
      reading.isHeld = true
      setImmediate(() => release(reading))
    }
    if (reading.isHeld) break
    const [first = Buffer.alloc(0)] = rest
    const end = isBody ? -1 : first.indexOf(HEADER_END)
    const size = end < 0 ? Math.min(first.length, PART) : end + HEADER_END.length
    if (size < first.length) rest[0] = first.subarray(size)
    else rest.shift()
    reading.octets -= size
    const part = first.subarray(0, size)
    parse(part)
    if (hasManyLines(part)) parts = PARTS_OF_TURN - 1
    isBody = (unanswered.get(socket) ?? 0) === before && !isBody
  }
  if (!reading.isHeld || reading.octets <= MAX_AHEAD || reading.isStopped) return
  reading.isStopped = true
  socket.pause()
}

function hasManyLines(part: Buffer): boolean {
  let lines = 0
  for (let at = part.indexOf(10); at >= 0 && lines < MANY_LINES; at = part.indexOf(10, at + 1)) lines++
  return lines === MANY_LINES
}

function release(reading: Reading): void {
  if ((unanswered.get(reading.socket) ?? 0) > 1 || !reading.isHeld) return
  reading.isHeld = false
  if (!reading.isStopped) return read(reading)
  reading.isStopped = false
  // Goes on with `onResume`.
  reading.resume()
}
