/**
 * Embedded resources (`x-kubernetes-embedded-resource`): apiVersion and kind are required and well-formed, at any
 * depth.
 */
import { invalid, required } from './field-error.ts'
import type { Cause, Schema } from './model.ts'
import { oncePerSchema, type SchemaCheck } from './schema-check.ts'

/** Undefined when the schema contains no embedded resource. */
export const embeddedCheck = oncePerSchema(compile)

function compile(schema: Schema): SchemaCheck | undefined {
  const known = new Map<string, SchemaCheck>()
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const check = embeddedCheck(property)
    if (check !== undefined) known.set(name, check)
  }
  const { additionalProperties, items } = schema
  const extra = typeof additionalProperties === 'object' ? embeddedCheck(additionalProperties) : undefined
  const ofItems = items && embeddedCheck(items)
  const isEmbedded = schema['x-kubernetes-embedded-resource'] === true
  if (!isEmbedded && known.size === 0 && extra === undefined && ofItems === undefined) return undefined
  return (value, path, causes) => {
    if (Array.isArray(value)) {
      if (ofItems !== undefined) for (const [i, item] of value.entries()) ofItems(item, `${path}[${i}]`, causes)
    } else if (typeof value === 'object' && value !== null) {
      if (isEmbedded) checkObject(value as Record<string, unknown>, path, causes)
      for (const [key, item] of Object.entries(value)) {
        const check = known.get(key)
        if (check !== undefined) check(item, path === '' ? key : `${path}.${key}`, causes)
        else extra?.(item, `${path}[${key}]`, causes)
      }
    }
  }
}

const LABEL_ADVICE =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"

function checkObject(object: Record<string, unknown>, path: string, causes: Cause[]): void {
  for (const key of ['apiVersion', 'kind']) if (!Object.hasOwn(object, key)) causes.push(required(`${path}.${key}`))
  for (const [key, value] of Object.entries(object)) {
    if (key !== 'apiVersion' && key !== 'kind') continue
    const field = `${path}.${key}`
    if (typeof value !== 'string') causes.push(invalid(field, value, 'must be a string'))
    else if (value === '') causes.push(invalid(field, value, 'must not be empty'))
    else if (key === 'apiVersion' && value.split('/').length > 2) {
      causes.push(invalid(field, value, `unexpected GroupVersion string: ${value}`))
    } else if (key === 'kind' && !/^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/.test(value.toLowerCase())) {
      causes.push(invalid(field, value, `may have mixed case, but should otherwise match: ${LABEL_ADVICE}`))
    }
  }
}
