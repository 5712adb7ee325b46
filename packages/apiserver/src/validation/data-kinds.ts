/** ConfigMaps and Secrets: syntax of keys, total size, required keys of Secret types. */
import { explainSyntaxError } from '../codec/json-text.ts'
import { forbiddenValue, invalidValue, requiredValue, tooLong } from './metadata.ts'
import { checkConfigKey } from './names.ts'
import { type ApiObject, getOwn, isRecord, isSameJson } from '../codec/object-shape.ts'
import type { Cause } from '../schema/model.ts'
import { immutable, named, text } from './field-rules.ts'

const maxDataBytes = 1024 * 1024

function keys(data: unknown, field: string): Cause[] {
  return isRecord(data) ? Object.keys(data).flatMap((key) => named(checkConfigKey, `${field}[${key}]`, key)) : []
}

function bytes(data: unknown, encoding: BufferEncoding): number {
  if (!isRecord(data)) return 0
  return Object.values(data).reduce<number>((sum, value) => sum + Buffer.byteLength(text(value), encoding), 0)
}

function frozen(object: ApiObject, old: ApiObject | undefined, fields: readonly string[]): Cause[] {
  if (old?.['immutable'] !== true) return []
  const why = 'field is immutable when `immutable` is set'
  return [
    ...(object['immutable'] === true ? [] : [forbiddenValue('immutable', why)]),
    ...fields
      .filter((field) => !isSameJson(object[field] ?? {}, old[field] ?? {}))
      .map((field) => forbiddenValue(field, why)),
  ]
}

export function validateConfigMap(object: ApiObject, old: ApiObject | undefined): Cause[] {
  const { data, binaryData } = object
  const isTaken = (key: string): boolean => isRecord(binaryData) && Object.hasOwn(binaryData, key)
  const causes = [
    ...frozen(object, old, ['data', 'binaryData']),
    ...(isRecord(data) ? Object.keys(data) : []).flatMap((key) => [
      ...named(checkConfigKey, `data[${key}]`, key),
      ...(isTaken(key) ? [invalidValue(`data[${key}]`, key, 'duplicate of key present in binaryData')] : []),
    ]),
    ...keys(binaryData, 'binaryData'),
  ]
  if (bytes(data, 'utf8') + bytes(binaryData, 'base64') > maxDataBytes) causes.push(tooLong('', maxDataBytes))
  return causes
}

const accountAnnotation = 'kubernetes.io/service-account.name'

/** Required content of the Secret types that Kubernetes defines. */
const secretTypes: ReadonlyMap<string, (object: ApiObject) => Cause[]> = new Map([
  ['kubernetes.io/tls', (object) => ['tls.crt', 'tls.key'].flatMap((key) => requiredKey(object, key))],
  ['kubernetes.io/ssh-auth', (object) => requiredKey(object, 'ssh-privatekey')],
  ['kubernetes.io/dockerconfigjson', (object) => jsonKey(object, '.dockerconfigjson')],
  ['kubernetes.io/dockercfg', (object) => jsonKey(object, '.dockercfg')],
  [
    'kubernetes.io/basic-auth',
    (object) => {
      const causes = ['username', 'password'].flatMap((key) => requiredKey(object, key))
      return causes.length === 2 ? causes : []
    },
  ],
  [
    'kubernetes.io/service-account-token',
    ({ metadata }) =>
      (metadata.annotations?.[accountAnnotation] ?? '') === ''
        ? [requiredValue(`metadata.annotations[${accountAnnotation}]`)]
        : [],
  ],
])

function requiredKey(object: ApiObject, key: string): Cause[] {
  return getOwn(object['data'], key) === undefined ? [requiredValue(`data[${key}]`)] : []
}

function jsonKey(object: ApiObject, key: string): Cause[] {
  const value = getOwn(object['data'], key)
  if (value === undefined) return [requiredValue(`data[${key}]`)]
  const problem = explainSyntaxError(Buffer.from(text(value), 'base64').toString())
  return problem === undefined ? [] : [invalidValue(`data[${key}]`, '<secret contents redacted>', problem)]
}

export function validateSecret(object: ApiObject, old: ApiObject | undefined): Cause[] {
  const { data, type } = object
  const causes = [
    ...(old !== undefined && type !== old['type'] ? [invalidValue('type', type, immutable)] : []),
    ...frozen(object, old, ['data']),
    ...keys(data, 'data'),
  ]
  if (bytes(data, 'base64') > maxDataBytes) causes.push(tooLong('data', maxDataBytes))
  return [...causes, ...(secretTypes.get(text(type))?.(object) ?? [])]
}
