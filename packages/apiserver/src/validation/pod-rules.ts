/** Pod specs of pods, templates and jobs. */
import { duplicateValue, forbiddenValue, invalidValue, requiredValue } from './metadata.ts'
import { checkLabel, checkQualifiedName, checkSubdomain } from './names.ts'
import {
  type ApiObject,
  asRecords,
  asStrings,
  getPath,
  isRecord,
  isSameJson,
  type Json,
} from '../codec/object-shape.ts'
import type { Cause } from '../schema/model.ts'
import { validateContainer } from './container-rules.ts'
import { ipAddress, labels, named, oneOf, oneOfIfSet, requiredName, text, within } from './field-rules.ts'

const maxSeconds = 2_147_483_647
const taintEffects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute']
const dnsPolicies = ['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None']

export function validatePodSpec(value: unknown, at: string): Cause[] {
  const spec: Json = isRecord(value) ? value : {}
  const volumes = new Set(asRecords(spec['volumes']).map((volume) => text(volume['name'])))
  const names = new Set<string>()
  const containers = (key: string): Cause[] =>
    asRecords(spec[key]).flatMap((one, index) => validateContainer(one, `${at}.${key}[${index}]`, names, volumes))
  const optional = (key: string, check: typeof checkLabel): Cause[] =>
    text(spec[key]) === '' ? [] : named(check, `${at}.${key}`, text(spec[key]))
  return [
    ...volumeRules(spec, `${at}.volumes`),
    ...(asRecords(spec['containers']).length === 0 ? [requiredValue(`${at}.containers`)] : containers('containers')),
    ...containers('initContainers'),
    ...oneOfIfSet(`${at}.restartPolicy`, spec['restartPolicy'], ['Always', 'OnFailure', 'Never']),
    ...oneOfIfSet(`${at}.dnsPolicy`, spec['dnsPolicy'], dnsPolicies),
    ...labels(`${at}.nodeSelector`, spec['nodeSelector']),
    ...optional('serviceAccountName', checkSubdomain),
    ...optional('nodeName', checkSubdomain),
    ...within(`${at}.activeDeadlineSeconds`, spec['activeDeadlineSeconds'], 1, maxSeconds),
    ...optional('hostname', checkLabel),
    ...optional('subdomain', checkLabel),
    ...asRecords(spec['tolerations']).flatMap((one, index) => toleration(one, `${at}.tolerations[${index}]`)),
    ...asRecords(spec['hostAliases']).flatMap((alias, index) => [
      ...ipAddress(`${at}.hostAliases[${index}].ip`, text(alias['ip'])),
      ...asStrings(alias['hostnames']).flatMap((name, position) =>
        named(checkSubdomain, `${at}.hostAliases[${index}].hostnames[${position}]`, name),
      ),
    ]),
  ]
}

export function warnOfPodSpec(spec: unknown, at: string): string[] {
  return asRecords(getPath(spec, 'imagePullSecrets')).flatMap((secret, index) =>
    text(secret['name']) === '' ? [`${at}.imagePullSecrets[${index}].name: invalid empty name ""`] : [],
  )
}

/** Volume sources and the required field of each; '' when none is required. */
const volumeSources: ReadonlyMap<string, string> = new Map([
  ['emptyDir', ''],
  ['hostPath', 'path'],
  ['secret', 'secretName'],
  ['persistentVolumeClaim', 'claimName'],
  ['configMap', 'name'],
  ['nfs', 'path'],
  ['downwardAPI', ''],
  ['projected', ''],
  ['csi', 'driver'],
  ['ephemeral', ''],
  ['image', ''],
])

function volumeRules(spec: Json, at: string): Cause[] {
  const names = new Set<string>()
  return asRecords(spec['volumes']).flatMap((volume, index) => {
    const here = `${at}[${index}]`
    const name = text(volume['name'])
    const [first, ...more] = [...volumeSources.keys()].filter((key) => isRecord(volume[key]))
    const causes = more.map((key) => forbiddenValue(`${here}.${key}`, 'may not specify more than 1 volume type'))
    const field = first === undefined ? '' : (volumeSources.get(first) ?? '')
    if (first !== undefined && field !== '' && text(getPath(volume, first, field)) === '')
      causes.push(requiredValue(`${here}.${first}.${field}`))
    const named = requiredName(checkLabel, `${here}.name`, name)
    if (named.length === 0 && names.has(name)) named.push(duplicateValue(`${here}.name`, name))
    names.add(name)
    return [...causes, ...named]
  })
}

function toleration(value: Json, at: string): Cause[] {
  const [key, operator, effect] = [text(value['key']), text(value['operator']), text(value['effect'])]
  const causes: Cause[] = key === '' ? [] : named(checkQualifiedName, `${at}.key`, key)
  const all = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
  if (key === '' && operator !== 'Exists') causes.push(invalidValue(`${at}.operator`, operator, all))
  if (value['tolerationSeconds'] !== undefined && effect !== 'NoExecute') {
    const why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
    causes.push(invalidValue(`${at}.effect`, effect, why))
  }
  if (operator === 'Exists' && text(value['value']) !== '') {
    const why = "value must be empty when `operator` is 'Exists'"
    causes.push(invalidValue(`${at}.operator`, text(value['value']), why))
  } else if (operator !== '') causes.push(...oneOf(`${at}.operator`, operator, ['Equal', 'Exists']))
  return [...causes, ...(effect === '' ? [] : oneOf(`${at}.effect`, effect, taintEffects))]
}

const changeable =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)'

/** The spec of a pod is immutable, except for its images and a few limits. */
export function validatePod(object: ApiObject, old: ApiObject | undefined): Cause[] {
  const causes = validatePodSpec(object['spec'], 'spec')
  if (old === undefined || causes.length > 0) return causes
  const isBound = text(getPath(old, 'spec', 'nodeName')) === '' && text(getPath(object, 'spec', 'nodeName')) !== ''
  return isSameJson(fixedPart(object, isBound), fixedPart(old, isBound)) ? [] : [forbiddenValue('spec', changeable)]
}

function fixedPart(object: ApiObject, isBound: boolean): Json {
  const spec: Json = isRecord(object['spec']) ? { ...object['spec'] } : {}
  const free = [
    'activeDeadlineSeconds',
    'tolerations',
    'terminationGracePeriodSeconds',
    ...(isBound ? ['nodeName'] : []),
  ]
  for (const key of free) delete spec[key]
  for (const key of ['containers', 'initContainers'])
    if (spec[key] !== undefined) spec[key] = asRecords(spec[key]).map(({ image: _image, ...rest }) => rest)
  delete spec['ephemeralContainers']
  return spec
}
