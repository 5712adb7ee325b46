/** Messages whose JSON form is not an object of their fields: times, quantities, int-or-string, embedded JSON. */
import { MalformedProtobuf, WireReader } from './wire.ts'

/** All fields of a small message by number; the last value of a repeated field is used. */
function readNumbers(bytes: Uint8Array): Map<number, number | Uint8Array> {
  const reader = new WireReader(bytes)
  const fields = new Map<number, number | Uint8Array>()
  while (!reader.isAtEnd()) {
    const { number, wireType } = reader.tag()
    if (wireType === 0) fields.set(number, reader.integer())
    else if (wireType === 2) fields.set(number, reader.block())
    else reader.skip(wireType)
  }
  return fields
}

function integerAt(fields: Map<number, number | Uint8Array>, number: number): number {
  const value = fields.get(number)
  return typeof value === 'number' ? value : 0
}

function textAt(fields: Map<number, number | Uint8Array>, number: number): string {
  const value = fields.get(number)
  return value instanceof Uint8Array
    ? Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString('utf8')
    : ''
}

/** RFC 3339 in UTC, whole seconds or microseconds; null for the zero time, an empty message. */
export function readTime(bytes: Uint8Array, hasMicroseconds: boolean): string | null {
  if (bytes.length === 0) return null
  const fields = readNumbers(bytes)
  const milliseconds = integerAt(fields, 1) * 1000
  if (!Number.isFinite(milliseconds) || Math.abs(milliseconds) > 8.64e15) {
    throw new MalformedProtobuf('proto: timestamp out of range')
  }
  const seconds = new Date(milliseconds).toISOString().slice(0, -5)
  if (!hasMicroseconds) return `${seconds}Z`
  const micros = Math.floor(integerAt(fields, 2) / 1000)
  return `${seconds}.${String(micros).padStart(6, '0')}Z`
}

export function readQuantity(bytes: Uint8Array): string {
  const text = textAt(readNumbers(bytes), 1)
  return text === '' ? '0' : text
}

export function readIntOrString(bytes: Uint8Array): number | string {
  const fields = readNumbers(bytes)
  return integerAt(fields, 1) === 1 ? textAt(fields, 3) : integerAt(fields, 2)
}

/** JSON inside the message; null when it is empty. */
export function readRaw(bytes: Uint8Array): unknown {
  const text = textAt(readNumbers(bytes), 1)
  if (text === '') return null
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new MalformedProtobuf(
      `embedded JSON cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}

/** A duration in Go's format: `1h2m3.5s`. */
export function readDuration(bytes: Uint8Array): string {
  const nanos = integerAt(readNumbers(bytes), 1)
  if (nanos === 0) return '0s'
  const sign = nanos < 0 ? '-' : ''
  const total = Math.abs(nanos)
  if (total < 1e3) return `${sign}${total}ns`
  if (total < 1e6) return `${sign}${total / 1e3}µs`
  if (total < 1e9) return `${sign}${total / 1e6}ms`
  const seconds = total / 1e9
  const hours = Math.floor(seconds / 3600)
  const minutes = Math.floor(seconds / 60) % 60
  const rest = `${Number((seconds % 60).toFixed(9))}s`
  return `${sign}${hours > 0 ? `${hours}h` : ''}${hours > 0 || minutes > 0 ? `${minutes}m` : ''}${rest}`
}
