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
  const wrong = asRecords(object['rules']).flatMap((rule, index) =>
    ruleOf(rule, `rules[${index}]`, object.kind === 'Role'),
  )
  const aggregation = object['aggregationRule']
  return isRecord(aggregation) ? [...aggregationRules(aggregation), ...wrong] : wrong
}

function ruleOf(rule: Json, at: string, isNamespaced: boolean): Cause[] {
  const [verbs, groups, resources, urls] = ['verbs', 'apiGroups', 'resources', 'nonResourceURLs'].map((key) =>
    asStrings(rule[key]),
  ) as [string[], string[], string[], string[]]
  const wrong: Cause[] = []
  if (verbs.length === 0) wrong.push(requiredValue(`${at}.verbs`, 'verbs must contain at least one value'))
  if (urls.length > 0) {
    const refuse = (why: string): unknown => wrong.push(invalidValue(`${at}.nonResourceURLs`, urls, why))
    if (isNamespaced) refuse('namespaced rules cannot apply to non-resource URLs')
    if (groups.length + resources.length + asStrings(rule['resourceNames']).length > 0)
      refuse('rules cannot apply to both regular resources and non-resource URLs')
    return wrong
  }
  if (groups.length === 0)
    wrong.push(requiredValue(`${at}.apiGroups`, 'resource rules must supply at least one api group'))
  if (resources.length === 0)
    wrong.push(requiredValue(`${at}.resources`, 'resource rules must supply at least one resource'))
  return wrong
}

function aggregationRules(rule: Json): Cause[] {
  const field = 'aggregationRule.clusterRoleSelectors'
  const selectors = asRecords(rule['clusterRoleSelectors'])
  if (selectors.length === 0)
    return [requiredValue(field, 'at least one clusterRoleSelector required if aggregationRule is non-nil')]
  return selectors.flatMap((selector, index) => {
    const wrong = labelSelector(`${field}[${index}]`, selector)
    // kube-apiserver reports the selector that it could not build, which is null.
    return wrong.length === 0 ? [] : [...wrong, invalidValue(`${field}[${index}]`, null, 'invalid label selector.')]
  })
}

export function validateBinding(object: ApiObject, old: ApiObject | undefined): Cause[] {
  const role: Json = isRecord(object['roleRef']) ? object['roleRef'] : {}
  const isCluster = object.kind === 'ClusterRoleBinding'
  const wrong = [
    ...oneOf('roleRef.apiGroup', role['apiGroup'] ?? group, [group]),
    ...oneOf('roleRef.kind', role['kind'], isCluster ? ['ClusterRole'] : ['Role', 'ClusterRole']),
    ...requiredName(checkPathSegment, 'roleRef.name', role['name']),
    ...asRecords(object['subjects']).flatMap((subject, index) =>
      subjectRules(subject, `subjects[${index}]`, isCluster),
    ),
  ]
  if (old === undefined || isSameJson(role, old['roleRef'])) return wrong
  const internal = { APIGroup: text(role['apiGroup']), Kind: text(role['kind']), Name: text(getPath(role, 'name')) }
  return [...wrong, invalidValue('roleRef', internal, 'cannot change roleRef')]
}

function subjectRules(subject: Json, at: string, isCluster: boolean): Cause[] {
  const [name, kind, apiGroup] = [text(subject['name']), text(subject['kind']), text(subject['apiGroup'])]
  const wrong: Cause[] = name === '' ? [requiredValue(`${at}.name`)] : []
  switch (kind) {
    case 'ServiceAccount':
      if (name !== '') wrong.push(...named(checkSubdomain, `${at}.name`, name))
      if (apiGroup !== '') wrong.push(unsupportedValue(`${at}.apiGroup`, apiGroup, ['']))
      if (isCluster && text(subject['namespace']) === '') wrong.push(requiredValue(`${at}.namespace`))
      return wrong
    case 'User':
    case 'Group':
      return [...wrong, ...oneOf(`${at}.apiGroup`, apiGroup, [group])]
    default:
      return [...wrong, unsupportedValue(`${at}.kind`, kind, ['ServiceAccount', 'User', 'Group'])]
  }
}
