/** Strategy of CustomResourceDefinition objects: defaults, validation, deletion. */
import { forbiddenValue, invalidValue, requiredValue, unsupportedValue } from '../validation/metadata.ts'
import { checkDns1035Label, checkSubdomain } from '../validation/names.ts'
import {
  type ApiObject,
  asRecords,
  asStrings,
  getPath,
  isRecord,
  isSameJson,
  type Json,
} from '../codec/object-shape.ts'
import { parseJsonPath } from '../codec/json-path.ts'
import type { Strategy } from '../resource/resource.ts'
import type { Cause } from '../schema/model.ts'
import { findEngine } from '../cel/engine.ts'
import { checkSchemaDefaults } from '../schema/definition/default-check.ts'
import { checkKeywords, checkRules, unknownFormats } from '../schema/definition/rule-check.ts'
import { checkStructural, compileSchema, prepareSchema } from '../schema/schema.ts'
import { cleanupFinalizer, readVersions } from './definition.ts'

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

function applyDefaults(object: ApiObject): void {
  const spec = object['spec']
  if (!isRecord(spec)) return
  const names = spec['names']
  if (isRecord(names)) {
    const kind = text(names['kind'])
    if (text(names['singular']) === '') names['singular'] = kind.toLowerCase()
    if (text(names['listKind']) === '' && kind !== '') names['listKind'] = `${kind}List`
  }
  if (!isRecord(spec['conversion'])) spec['conversion'] = { strategy: 'None' }
  const service = getPath(spec, 'conversion', 'webhook', 'clientConfig', 'service')
  if (isRecord(service) && service['port'] === undefined) service['port'] = 443
}

function storageName(object: ApiObject): string {
  return text(readVersions(object).find((version) => version['storage'] === true)?.['name'])
}

/** Every former storage version remains listed until a client migrates the objects and removes it. */
function storedVersions(object: ApiObject, old: ApiObject | undefined): string[] {
  const before = asStrings(getPath(old, 'status', 'storedVersions'))
  const now = storageName(object)
  return before.includes(now) ? before : [...before, now]
}

function checkNames(object: ApiObject): Cause[] {
  const causes: Cause[] = []
  const at = 'spec.names'
  const names = getPath(object, 'spec', 'names')
  const read = (key: string): string => text(getPath(names, key))
  for (const key of ['plural', 'singular', 'kind', 'listKind'])
    if (read(key) === '') causes.push(requiredValue(`${at}.${key}`))
  const check = (field: string, value: string): void => {
    const problems = value === '' ? [] : checkDns1035Label(value)
    if (problems.length > 0) causes.push(invalidValue(field, value, problems.join(',')))
  }
  check(`${at}.plural`, read('plural'))
  check(`${at}.singular`, read('singular'))
  for (const key of ['kind', 'listKind']) {
    const problems = read(key) === '' ? [] : checkDns1035Label(read(key).toLowerCase())
    if (problems.length > 0)
      causes.push(
        invalidValue(
          `${at}.${key}`,
          read(key),
          `may have mixed case, but should otherwise match: ${problems.join(',')}`,
        ),
      )
  }
  asStrings(getPath(names, 'shortNames')).forEach((name, index) => check(`${at}.shortNames[${index}]`, name))
  if (read('kind') !== '' && read('kind') === read('listKind')) {
    causes.push(invalidValue(`${at}.listKind`, read('listKind'), 'kind and listKind may not be the same'))
  }
  asStrings(getPath(names, 'categories')).forEach((name, index) => check(`${at}.categories[${index}]`, name))
  return causes
}

function checkVersions(object: ApiObject): Cause[] {
  const causes: Cause[] = []
  const versions = readVersions(object)
  versions.forEach((version, index) => {
    const at = `spec.versions[${index}]`
    if (!isRecord(getPath(version, 'schema', 'openAPIV3Schema')))
      causes.push(requiredValue(`${at}.schema.openAPIV3Schema`))
  })
  versions.forEach((version, index) => {
    const at = `spec.versions[${index}]`
    const name = text(version['name'])
    const problems = checkDns1035Label(name)
    if (problems.length > 0) causes.push(invalidValue(`${at}.name`, name, problems.join(',')))
    // Properties that are equal in all versions are validated and reported as if declared once at the top level.
    const isShared = (key: string): boolean => versions.every((other) => isSameJson(other[key], versions[0]?.[key]))
    const schemaAt = isShared('schema') ? 'spec.validation' : `${at}.schema`
    const columnsAt = isShared('additionalPrinterColumns') ? 'spec' : at
    if (index === 0 || !isShared('schema')) causes.push(...checkSchema(version, schemaAt))
    if (index === 0 || !isShared('additionalPrinterColumns')) causes.push(...checkColumns(version, columnsAt))
    if (index === 0 || !isShared('subresources'))
      causes.push(...checkScalePaths(version, isShared('subresources') ? 'spec' : at))
    if (index === 0 || !isShared('selectableFields'))
      causes.push(...checkSelectable(version, isShared('selectableFields') ? 'spec' : at))
    // An invalid first name is also reported at `spec.version`, the deprecated field of definitions with one version.
    if (index === 0 && problems.length > 0) causes.push(invalidValue('spec.version', name, problems.join(',')))
  })
  const names = versions.map((version) => text(version['name']))
  if (new Set(names).size !== names.length)
    causes.push(invalidValue('spec.versions', versions, 'must contain unique version names'))
  const storage = versions.filter((version) => version['storage'] === true)
  if (storage.length !== 1)
    causes.push(invalidValue('spec.versions', versions, 'must have exactly one version marked as storage version'))
  if (storage.length === 0)
    causes.push(invalidValue('status.storedVersions', null, 'must have at least one stored version'))
  return causes
}

function checkSchema(version: Json, at: string): Cause[] {
  const schema = getPath(version, 'schema', 'openAPIV3Schema')
  if (!isRecord(schema)) return []
  const prefix = `${at}.openAPIV3Schema`
  const wrongTypes = checkTypes(schema, prefix)
  if (wrongTypes.length > 0) return wrongTypes
  const keywords = checkKeywords(schema)
  const causes = keywords.length > 0 ? keywords : checkStructural(schema)
  const engine = findEngine()
  if (causes.length === 0) causes.push(...checkSchemaDefaults(schema))
  if (causes.length === 0 && engine !== undefined) causes.push(...checkRules(schema, engine))
  return causes.map((cause) => ({ ...cause, field: cause.field === '' ? prefix : `${prefix}.${cause.field}` }))
}

const schemaTypes = ['array', 'boolean', 'integer', 'number', 'object', 'string']

function checkTypes(schema: Json, at: string): Cause[] {
  const { type, properties, items, additionalProperties } = schema
  const causes =
    typeof type === 'string' && type !== '' && !schemaTypes.includes(type)
      ? [unsupportedValue(`${at}.type`, type, schemaTypes)]
      : []
  for (const key of isRecord(properties) ? Object.keys(properties).sort() : []) {
    const child = (properties as Json)[key]
    if (isRecord(child)) causes.push(...checkTypes(child, `${at}.properties[${key}]`))
  }
  if (isRecord(items)) causes.push(...checkTypes(items, `${at}.items`))
  if (isRecord(additionalProperties)) causes.push(...checkTypes(additionalProperties, `${at}.additionalProperties`))
  return causes
}

const columnTypes = ['boolean', 'date', 'integer', 'number', 'string']

function checkColumns(version: Json, at: string): Cause[] {
  return asRecords(version['additionalPrinterColumns']).flatMap((column, index) => {
    const here = `${at}.additionalPrinterColumns[${index}]`
    const path = text(column['jsonPath'])
    return [
      ...(text(column['name']) === '' ? [requiredValue(`${here}.name`)] : []),
      ...(text(column['type']) === ''
        ? [requiredValue(`${here}.type`, `must be one of ${columnTypes.join(',')}`)]
        : columnTypes.includes(text(column['type']))
          ? []
          : [invalidValue(`${here}.type`, column['type'], `must be one of ${columnTypes.join(',')}`)]),
      ...(path === ''
        ? [requiredValue(`${here}.JSONPath`)]
        : !path.startsWith('.')
          ? [invalidValue(`${here}.JSONPath`, path, notSimple)]
          : parseJsonPath(path) === undefined
            ? [invalidValue(`${here}.JSONPath`, path, 'only simple json path is allowed')]
            : []),
    ]
  })
}

const notSimple = 'must be a simple json path starting with .'

/** Validates the paths of the scale subresource. */
function checkScalePaths(version: Json, at: string): Cause[] {
  const scale = getPath(version, 'subresources', 'scale')
  if (!isRecord(scale)) return []
  const check = (key: string, roots: readonly string[], isRequired: boolean): Cause[] => {
    const field = `${at}.subresources.scale.${key}`
    const path = text(scale[key])
    if (path === '') return isRequired ? [requiredValue(field)] : []
    if (!path.startsWith('.') || parseJsonPath(path) === undefined) return [invalidValue(field, path, notSimple)]
    const isBelow = roots.some((root) => path.startsWith(`${root}.`))
    return isBelow ? [] : [invalidValue(field, path, `should be a json path under ${roots.join(' or ')}`)]
  }
  return [
    ...check('specReplicasPath', ['.spec'], true),
    ...check('statusReplicasPath', ['.status'], true),
    ...check('labelSelectorPath', ['.spec', '.status'], false),
  ]
}

const selectableTypes = ['string', 'boolean', 'integer']

function checkSelectable(version: Json, at: string): Cause[] {
  const schema = getPath(version, 'schema', 'openAPIV3Schema')
  return asRecords(version['selectableFields']).flatMap((entry, index) => {
    const field = `${at}.selectableFields[${index}].jsonPath`
    const path = text(entry['jsonPath'])
    if (path === '') return [requiredValue(field)]
    if (!/^(\.[A-Za-z_]\w*)+$/.test(path)) return [invalidValue(field, path, `is an invalid path: ${notSimple}`)]
    const target = path
      .slice(1)
      .split('.')
      .reduce<unknown>((current, name) => getPath(current, 'properties', name), schema)
    if (target === undefined) return [invalidValue(field, path, 'is an invalid path: does not refer to a valid field')]
    const isPlain = selectableTypes.includes(text(getPath(target, 'type')))
    return isPlain ? [] : [invalidValue(field, path, 'must point to a field of type string, boolean or integer')]
  })
}

function checkConversion(object: ApiObject): Cause[] {
  const conversion = getPath(object, 'spec', 'conversion')
  const strategy = getPath(conversion, 'strategy')
  if (strategy === 'None') {
    return isRecord(getPath(conversion, 'webhook'))
      ? [forbiddenValue('spec.conversion.webhookClientConfig', 'should not be set when strategy is not set to Webhook')]
      : []
  }
  if (strategy !== 'Webhook') return [unsupportedValue('spec.conversion.strategy', strategy, ['None', 'Webhook'])]
  return isRecord(getPath(conversion, 'webhook', 'clientConfig'))
    ? []
    : [requiredValue('spec.conversion.webhookClientConfig', 'required when strategy is set to Webhook')]
}

function checkDefinition(object: ApiObject): Cause[] {
  const causes: Cause[] = []
  const group = text(getPath(object, 'spec', 'group'))
  const plural = text(getPath(object, 'spec', 'names', 'plural'))
  const name = object.metadata.name ?? ''
  if (name !== `${plural}.${group}`)
    causes.push(invalidValue('metadata.name', name, 'must be spec.names.plural+"."+spec.group'))
  const problems = group === '' ? [] : checkSubdomain(group)
  if (group === '') causes.push(requiredValue('spec.group'))
  else if (problems.length > 0) causes.push(invalidValue('spec.group', group, problems.join(',')))
  else if (!group.includes('.'))
    causes.push(invalidValue('spec.group', group, 'should be a domain with at least one dot'))
  const scope = getPath(object, 'spec', 'scope')
  if (text(scope) === '') causes.push(requiredValue('spec.scope'))
  else if (scope !== 'Cluster' && scope !== 'Namespaced')
    causes.push(unsupportedValue('spec.scope', scope, ['Cluster', 'Namespaced']))
  return [...causes, ...checkVersions(object), ...checkNames(object), ...checkConversion(object)]
}

const approvalAnnotation = 'api-approved.kubernetes.io'
const approvalHelp = 'see https://github.com/kubernetes/enhancements/pull/1111'

/**
 * Groups of the Kubernetes project: an annotation of the definition must state where its API was approved, or that it
 * is unapproved.
 */
function checkApproval(object: ApiObject, old: ApiObject | undefined): Cause[] {
  if (!/(?:^|\.)(?:k8s|kubernetes)\.io$/.test(text(getPath(object, 'spec', 'group')))) return []
  const read = (definition: ApiObject): string => definition.metadata.annotations?.[approvalAnnotation] ?? ''
  const value = read(object)
  const field = `metadata.annotations[${approvalAnnotation}]`
  if (value === '') {
    if (old !== undefined && read(old) === '') return []
    return [
      requiredValue(field, `protected groups must have approval annotation "${approvalAnnotation}", ${approvalHelp}`),
    ]
  }
  if (value.startsWith('unapproved') || /^[a-z][a-z0-9+.-]*:\/\/[^/]/i.test(value)) return []
  if (old !== undefined && read(old) === value) return []
  const why = `protected groups must have approval annotation "${approvalAnnotation}" with either a URL or a reason starting with "unapproved", ${approvalHelp}`
  return [invalidValue(field, value, why)]
}

const immutable = ['group', 'scope', 'names.plural', 'names.kind'] as const

function checkUpdate(object: ApiObject, old: ApiObject): Cause[] {
  const established = asRecords(getPath(old, 'status', 'conditions')).some(
    (condition) => condition['type'] === 'Established' && condition['status'] === 'True',
  )
  const causes: Cause[] = []
  if (established) {
    for (const path of immutable) {
      const keys = path.split('.')
      const [next, before] = [getPath(object, 'spec', ...keys), getPath(old, 'spec', ...keys)]
      if (!isSameJson(next, before)) causes.push(invalidValue(`spec.${path}`, next, 'field is immutable'))
    }
  }
  const served = new Set(readVersions(object).map((version) => text(version['name'])))
  asStrings(getPath(object, 'status', 'storedVersions')).forEach((version, index) => {
    if (!served.has(version))
      causes.push(
        invalidValue(
          `status.storedVersions[${index}]`,
          version,
          'missing from spec.versions; version was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in version and removes version from status.storedVersions',
        ),
      )
  })
  return causes
}

export function definitionStrategy(common: Strategy): Strategy {
  return {
    ...common,
    hasGeneration: true,
    allowsUnconditionalUpdate: false,
    applyDefaults,
    async prepare(object) {
      for (const version of readVersions(object)) {
        const schema = getPath(version, 'schema', 'openAPIV3Schema')
        if (isRecord(schema) && checkStructural(schema).length === 0) await prepareSchema(schema)
      }
    },
    prepareForCreate(object) {
      object['status'] = {
        conditions: null,
        acceptedNames: { plural: '', kind: '' },
        storedVersions: storedVersions(object, undefined),
      }
    },
    prepareForUpdate(object, old, context) {
      if (context.subresource === 'status') return
      const status = (old['status'] ?? {}) as Json
      object['status'] = { ...status, storedVersions: storedVersions(object, old) }
    },
    validate(object, old, context) {
      for (const version of readVersions(object)) warnOfRules(version, (message) => context.warn(message))
      return [
        ...checkDefinition(object),
        ...checkApproval(object, old),
        ...(old === undefined ? [] : checkUpdate(object, old)),
      ]
    },
    whenMarked: (object) => ({
      ...object,
      status: {
        ...(object['status'] as Json),
        conditions: [
          ...asRecords(getPath(object, 'status', 'conditions')),
          {
            type: 'Terminating',
            status: 'True',
            lastTransitionTime: object.metadata.deletionTimestamp,
            reason: 'InstanceDeletionPending',
            message: 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
          },
        ],
      },
    }),
    finalizersOnDelete: [cleanupFinalizer],
  }
}

/** Warns of rules that cannot be evaluated, and therefore are not enforced, when the definition is written. */
function warnOfRules(version: Json, warn: (message: string) => void): void {
  const schema = getPath(version, 'schema', 'openAPIV3Schema')
  if (!isRecord(schema)) return
  // A schema that is not structural is rejected anyway, and may not compile.
  if (checkStructural(schema).length > 0) return
  for (const warning of compileSchema(schema).warnings) warn(warning)
  for (const format of unknownFormats(schema)) warn(`unrecognized format ${JSON.stringify(format)}`)
}
