/** Roles and their bindings. */
import { invalidValue, requiredValue, unsupportedValue } from './metadata.ts'
import { checkPathSegment, checkSubdomain } from './names.ts'
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
import { labelSelector, named, oneOf, requiredName, text } from './field-rules.ts'

const group = 'rbac.authorization.k8s.io'

export function validateRole(object: ApiObject): Cause[] {
  const causes = asRecords(object['rules']).flatMap((rule, index) =>
    ruleOf(rule, `rules[${index}]`, object.kind === 'Role'),
  )
  const aggregation = object['aggregationRule']
  return isRecord(aggregation) ? [...aggregationRules(aggregation), ...causes] : causes
}

function ruleOf(rule: Json, at: string, isNamespaced: boolean): Cause[] {
  const [verbs, groups, resources, urls] = ['verbs', 'apiGroups', 'resources', 'nonResourceURLs'].map((key) =>
    asStrings(rule[key]),
  ) as [string[], string[], string[], string[]]
  const causes: Cause[] = []
  if (verbs.length === 0) causes.push(requiredValue(`${at}.verbs`, 'verbs must contain at least one value'))
  if (urls.length > 0) {
    const refuse = (why: string): unknown => causes.push(invalidValue(`${at}.nonResourceURLs`, urls, why))
    if (isNamespaced) refuse('namespaced rules cannot apply to non-resource URLs')
    if (groups.length + resources.length + asStrings(rule['resourceNames']).length > 0)
      refuse('rules cannot apply to both regular resources and non-resource URLs')
    return causes
  }
  if (groups.length === 0)
    causes.push(requiredValue(`${at}.apiGroups`, 'resource rules must supply at least one api group'))
  if (resources.length === 0)
    causes.push(requiredValue(`${at}.resources`, 'resource rules must supply at least one resource'))
  return causes
}

function aggregationRules(rule: Json): Cause[] {
  const field = 'aggregationRule.clusterRoleSelectors'
  const selectors = asRecords(rule['clusterRoleSelectors'])
  if (selectors.length === 0)
    return [requiredValue(field, 'at least one clusterRoleSelector required if aggregationRule is non-nil')]
  return selectors.flatMap((selector, index) => {
    const causes = labelSelector(`${field}[${index}]`, selector)
    // kube-apiserver reports the selector that it could not build, which is null.
    return causes.length === 0 ? [] : [...causes, invalidValue(`${field}[${index}]`, null, 'invalid label selector.')]
  })
}

export function validateBinding(object: ApiObject, old: ApiObject | undefined): Cause[] {
  const role: Json = isRecord(object['roleRef']) ? object['roleRef'] : {}
  const isCluster = object.kind === 'ClusterRoleBinding'
  const causes = [
    ...oneOf('roleRef.apiGroup', role['apiGroup'] ?? group, [group]),
    ...oneOf('roleRef.kind', role['kind'], isCluster ? ['ClusterRole'] : ['Role', 'ClusterRole']),
    ...requiredName(checkPathSegment, 'roleRef.name', role['name']),
    ...asRecords(object['subjects']).flatMap((subject, index) =>
      subjectRules(subject, `subjects[${index}]`, isCluster),
    ),
  ]
  if (old === undefined || isSameJson(role, old['roleRef'])) return causes
  const internal = { APIGroup: text(role['apiGroup']), Kind: text(role['kind']), Name: text(getPath(role, 'name')) }
  return [...causes, invalidValue('roleRef', internal, 'cannot change roleRef')]
}

function subjectRules(subject: Json, at: string, isCluster: boolean): Cause[] {
  const [name, kind, apiGroup] = [text(subject['name']), text(subject['kind']), text(subject['apiGroup'])]
  const causes: Cause[] = name === '' ? [requiredValue(`${at}.name`)] : []
  switch (kind) {
    case 'ServiceAccount':
      if (name !== '') causes.push(...named(checkSubdomain, `${at}.name`, name))
      if (apiGroup !== '') causes.push(unsupportedValue(`${at}.apiGroup`, apiGroup, ['']))
      if (isCluster && text(subject['namespace']) === '') causes.push(requiredValue(`${at}.namespace`))
      return causes
    case 'User':
    case 'Group':
      return [...causes, ...oneOf(`${at}.apiGroup`, apiGroup, [group])]
    default:
      return [...causes, unsupportedValue(`${at}.kind`, kind, ['ServiceAccount', 'User', 'Group'])]
  }
}
