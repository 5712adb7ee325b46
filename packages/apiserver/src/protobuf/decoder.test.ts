import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MalformedProtobuf, UnsupportedKind, decodeProtobuf } from './decoder.ts'

/** Fields of a message, by number: a number is a varint, text and bytes are blocks, a list repeats, a map is nested. */
type Message = Map<number, unknown>

function varint(value: bigint): number[] {
  const bytes: number[] = []
  let rest = BigInt.asUintN(64, value)
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80)
    rest >>= 7n
  }
  return [...bytes, Number(rest)]
}

function encode(message: Message): Buffer {
  return Buffer.concat(
    [...message].flatMap(([field, value]) =>
      (Array.isArray(value) ? value : [value]).map((one) => encodeField(field, one)),
    ),
  )
}

function encodeField(field: number, value: unknown): Buffer {
  if (typeof value === 'number') return Buffer.from([...varint(BigInt(field * 8)), ...varint(BigInt(value))])
  const block = value instanceof Map ? encode(value as Message) : Buffer.from(value as string)
  return Buffer.concat([Buffer.from([...varint(BigInt(field * 8 + 2)), ...varint(BigInt(block.length))]), block])
}

function message(...fields: [number, unknown][]): Message {
  return new Map(fields)
}

function envelope(apiVersion: string, kind: string, body: Message | Buffer): Buffer {
  const raw = body instanceof Map ? encode(body) : body
  const wrapper = encode(message([1, message([1, apiVersion], [2, kind])], [2, raw], [3, ''], [4, '']))
  return Buffer.concat([Buffer.from('k8s\0'), wrapper])
}

/** Go's encoding of an empty ObjectMeta: every field that is not a pointer. */
function metadata(name: string, ...more: [number, unknown][]): Message {
  return message([1, name], [2, ''], [3, ''], [4, ''], [5, ''], [6, ''], [7, 0], [8, message()], ...more)
}

describe('protobuf', () => {
  it.each<[string, string, Message, object]>([
    [
      'v1',
      'Namespace',
      message([1, metadata('n')], [2, message()], [3, message([1, ''])]),
      { metadata: { name: 'n' }, spec: {}, status: {} },
    ],
    [
      'v1',
      'ConfigMap',
      message(
        [1, metadata('c', [11, [message([1, 'a'], [2, 'b'])]])],
        [2, [message([1, 'k'], [2, 'v']), message([1, 'e'], [2, ''])]],
        [3, [message([1, 'bin'], [2, Buffer.from([1, 2])])]],
      ),
      { metadata: { name: 'c', labels: { a: 'b' } }, data: { k: 'v', e: '' }, binaryData: { bin: 'AQI=' } },
    ],
    [
      'apps/v1',
      'Deployment',
      message(
        [1, metadata('d')],
        [2, message([1, 0], [2, message([1, [message([1, 'a'], [2, 'b'])]])], [7, 0], [6, 3])],
        [3, message([1, 0])],
      ),
      {
        metadata: { name: 'd' },
        spec: {
          replicas: 0,
          selector: { matchLabels: { a: 'b' } },
          revisionHistoryLimit: 3,
          template: { metadata: {}, spec: { containers: null } },
          strategy: {},
        },
        status: {},
      },
    ],
    [
      'networking.k8s.io/v1',
      'Ingress',
      message(
        [1, metadata('i')],
        [
          2,
          message([
            3,
            [
              message(
                [1, 'h'],
                [
                  2,
                  message([
                    1,
                    message([
                      1,
                      [
                        message(
                          [1, '/'],
                          [2, message([4, message([1, 's'], [2, message([1, ''], [2, 80])])])],
                          [3, 'Prefix'],
                        ),
                      ],
                    ]),
                  ]),
                ],
              ),
            ],
          ]),
        ],
      ),
      {
        metadata: { name: 'i' },
        spec: {
          rules: [
            {
              host: 'h',
              http: {
                paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 's', port: { number: 80 } } } }],
              },
            },
          ],
        },
        status: { loadBalancer: {} },
      },
    ],
    [
      'v1',
      'Service',
      message(
        [1, metadata('s')],
        [
          2,
          message(
            [1, [message([1, ''], [2, 'TCP'], [3, 80], [4, message([1, 1], [2, 0], [3, 'web'])], [5, 0])]],
            [13, 0],
          ),
        ],
      ),
      {
        metadata: { name: 's' },
        spec: { ports: [{ protocol: 'TCP', port: 80, targetPort: 'web' }] },
        status: { loadBalancer: {} },
      },
    ],
    [
      'coordination.k8s.io/v1',
      'Lease',
      message(
        [1, metadata('l', [8, message([1, 1600000000])])],
        [2, message([1, 'me'], [2, 15], [3, message([1, 1600000000], [2, 123456000])])],
      ),
      {
        metadata: { name: 'l', creationTimestamp: '2020-09-13T12:26:40Z' },
        spec: { holderIdentity: 'me', leaseDurationSeconds: 15, acquireTime: '2020-09-13T12:26:40.123456Z' },
      },
    ],
    [
      'apps/v1',
      'DeleteOptions',
      message([1, 0], [4, 'Background']),
      { gracePeriodSeconds: 0, propagationPolicy: 'Background' },
    ],
    [
      'apiextensions.k8s.io/v1',
      'CustomResourceDefinition',
      message(
        [1, metadata('x')],
        [
          2,
          message(
            [1, 'g'],
            [3, message()],
            [4, 'Namespaced'],
            [
              7,
              [
                message(
                  [1, 'v1'],
                  [2, 1],
                  [3, 1],
                  [
                    4,
                    message([
                      1,
                      message(
                        [5, 'object'],
                        [30, message([1, 1], [2, message()])],
                        [8, message([1, Buffer.from('{"a":1}')])],
                      ),
                    ]),
                  ],
                ),
              ],
            ],
          ),
        ],
      ),
      {
        metadata: { name: 'x' },
        spec: {
          group: 'g',
          names: { plural: '', kind: '' },
          scope: 'Namespaced',
          versions: [
            {
              name: 'v1',
              served: true,
              storage: true,
              schema: { openAPIV3Schema: { type: 'object', additionalProperties: {}, default: { a: 1 } } },
            },
          ],
        },
        status: { conditions: null, acceptedNames: { plural: '', kind: '' }, storedVersions: null },
      },
    ],
  ])('%s %s has the shape of JSON', (apiVersion, kind, body, expected) => {
    expect(decodeProtobuf(envelope(apiVersion, kind, body)).object).toEqual({ apiVersion, kind, ...expected })
  })

  it('reads negative numbers', () => {
    const { object } = decodeProtobuf(envelope('v1', 'DeleteOptions', message([1, -5])))
    expect(object['gracePeriodSeconds']).toBe(-5)
  })

  it('rejects kinds without a table', () => {
    expect(() => decodeProtobuf(envelope('x/v1', 'Nope', message()))).toThrow(UnsupportedKind)
  })

  it('rejects bytes without an envelope', () => {
    expect(() => decodeProtobuf(Buffer.from('{}'))).toThrow(MalformedProtobuf)
  })

  it('throws only MalformedProtobuf on arbitrary bytes', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(['v1', 'Pod'], ['apiextensions.k8s.io/v1', 'CustomResourceDefinition'], ['v1', 'Event']),
        fc.uint8Array({ maxLength: 60 }),
        ([apiVersion = '', kind = ''], bytes) => {
          try {
            decodeProtobuf(envelope(apiVersion, kind, Buffer.from(bytes)))
          } catch (error) {
            if (!(error instanceof MalformedProtobuf)) throw error
          }
        },
      ),
      { numRuns: 3_000 },
    )
  })
})
