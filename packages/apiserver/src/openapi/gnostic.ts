/**
 * OpenAPI v2 in protobuf, the message `openapi.v2.Document` that kubectl up to 1.28 requires. Only the parts that those
 * clients read are written: definitions, operations with their query parameters, and extensions (as YAML, of which JSON
 * is a subset).
 *
 * Written from the end to the beginning: the length of a message is known when its content has been written, and
 * nothing is copied. Repeated fields are therefore written last item first.
 */
import type { Json } from './definitions.ts'

class BackwardWriter {
  #bytes = Buffer.allocUnsafe(1 << 16)
  /** Everything from this offset to the end is written. */
  #at = this.#bytes.length

  #reserve(size: number): void {
    if (size <= this.#at) return
    const written = this.#bytes.length - this.#at
    const grown = Buffer.allocUnsafe((this.#bytes.length + size) * 2)
    this.#bytes.copy(grown, grown.length - written, this.#at)
    this.#at = grown.length - written
    this.#bytes = grown
  }

  #varint(value: number): void {
    let size = 1
    for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) size++
    this.#reserve(size)
    this.#at -= size
    let rest = value
    for (let i = 0; i < size; i++) {
      this.#bytes[this.#at + i] = i === size - 1 ? rest : (rest % 0x80) + 0x80
      rest = Math.floor(rest / 0x80)
    }
  }

  /** A message field with the bytes that `content` writes. */
  block(field: number, content: () => void): void {
    const end = this.#bytes.length - this.#at
    content()
    this.#varint(this.#bytes.length - this.#at - end)
    this.#varint(field * 8 + 2)
  }

  text(field: number, value: unknown): void {
    if (value === undefined || value === '') return
    const content = typeof value === 'string' ? value : JSON.stringify(value)
    const size = Buffer.byteLength(content)
    this.#reserve(size)
    this.#at -= size
    this.#bytes.write(content, this.#at, size, 'utf8')
    this.#varint(size)
    this.#varint(field * 8 + 2)
  }

  flag(field: number, value: unknown): void {
    if (value !== true) return
    this.#varint(1)
    this.#varint(field * 8)
  }

  /** An entry of a JSON object. */
  named(field: number, name: string, content: () => void): void {
    this.block(field, () => {
      this.block(2, content)
      this.text(1, name)
    })
  }

  finish(): Uint8Array {
    return this.#bytes.subarray(this.#at)
  }
}

export function encodeDocument(document: Json): Uint8Array {
  const writer = new BackwardWriter()
  const info = document['info'] as { title: string; version: string }
  const definitions = entries(document['definitions'])
  if (definitions.length > 0) {
    writer.block(9, () =>
      definitions.forEach(([name, value]) => writer.named(1, name, () => writeSchema(writer, value))),
    )
  }
  writer.block(8, () =>
    entries(document['paths']).forEach(([path, item]) => writer.named(2, path, () => writePathItem(writer, item))),
  )
  writer.block(2, () => {
    writer.text(2, info.version)
    writer.text(1, info.title)
  })
  writer.text(1, '2.0')
  return writer.finish()
}

/** Last first. */
function entries(value: unknown): [string, Json][] {
  return Object.entries((value ?? {}) as Record<string, Json>).toReversed()
}

function items(value: unknown): unknown[] {
  return ((value ?? []) as unknown[]).toReversed()
}

const METHOD_FIELDS: Readonly<Record<string, number>> = { get: 2, put: 3, post: 4, delete: 5, patch: 8 }

function writePathItem(writer: BackwardWriter, item: Json): void {
  for (const [method, operation] of entries(item))
    writer.block(METHOD_FIELDS[method]!, () => writeOperation(writer, operation))
}

function writeOperation(writer: BackwardWriter, operation: Json): void {
  writeExtensions(writer, 13, operation)
  writer.block(9, () => {
    for (const [code, response] of entries(operation['responses'])) {
      writer.named(1, code, () => writer.block(1, () => writeResponse(writer, response)))
    }
  })
  for (const parameter of items(operation['parameters'])) writeParameter(writer, parameter as Json)
  writer.text(5, operation['operationId'])
}

function writeResponse(writer: BackwardWriter, response: Json): void {
  writer.block(2, () => writer.block(1, () => writeSchema(writer, response['schema'] as Json)))
  writer.text(1, response['description'])
}

/** Parameters are nested in three oneofs: parameter, non-body parameter, query parameter. */
function writeParameter(writer: BackwardWriter, parameter: Json): void {
  const writeQuery = (): void => {
    writer.flag(20, parameter['uniqueItems'])
    writer.text(6, parameter['type'])
    writer.text(4, parameter['name'])
    writer.text(2, 'query')
  }
  writer.block(8, () => writer.block(1, () => writer.block(2, () => writer.block(3, writeQuery))))
}

function writeAny(writer: BackwardWriter, value: unknown): void {
  writer.text(2, `${JSON.stringify(value)}\n`)
}

function writeExtensions(writer: BackwardWriter, field: number, value: Json): void {
  for (const [key, extension] of entries(value)) {
    if (key.startsWith('x-')) writer.named(field, key, () => writeAny(writer, extension))
  }
}

function writeSchema(writer: BackwardWriter, schema: Json): void {
  writeExtensions(writer, 31, schema)
  const properties = entries(schema['properties'])
  if (properties.length > 0) {
    writer.block(25, () =>
      properties.forEach(([name, value]) => writer.named(1, name, () => writeSchema(writer, value))),
    )
  }
  for (const part of items(schema['allOf'])) writer.block(24, () => writeSchema(writer, part as Json))
  const { items: item, type, additionalProperties: additional } = schema
  if (item !== undefined) writer.block(23, () => writer.block(1, () => writeSchema(writer, item as Json)))
  if (type !== undefined) writer.block(22, () => writer.text(1, type))
  if (typeof additional === 'object')
    writer.block(21, () => writer.block(1, () => writeSchema(writer, additional as Json)))
  for (const value of items(schema['enum'])) writer.block(20, () => writeAny(writer, value))
  for (const name of items(schema['required'])) writer.text(19, name)
  writer.text(13, schema['pattern'])
  if (schema['default'] !== undefined) writer.block(5, () => writeAny(writer, schema['default']))
  writer.text(4, schema['description'])
  writer.text(3, schema['title'])
  writer.text(2, schema['format'])
  writer.text(1, schema['$ref'])
}
