/**
 * Validates the defaults of a schema. Paths begin at the schema; the path inside the value is empty, as in
 * kube-apiserver.
 */
import type { Cause, Schema } from '../model.ts'
import { reportViolations } from '../report.ts'

export function checkSchemaDefaults(schema: Schema, path = ''): Cause[] {
  const inside = (name: string): string => (path === '' ? name : `${path}.${name}`)
  const { default: value, properties = {}, items, additionalProperties: extra } = schema
  const own = value === undefined ? [] : reportViolations(schema, value, undefined)
  return [
    ...own.map((cause) => ({
      ...cause,
      field: [inside('default'), cause.field].filter((part) => part !== '').join('.'),
    })),
    ...Object.entries(properties).flatMap(([name, property]) =>
      checkSchemaDefaults(property, `${inside('properties')}[${name}]`),
    ),
    ...(items === undefined ? [] : checkSchemaDefaults(items, inside('items'))),
    ...(typeof extra === 'object' ? checkSchemaDefaults(extra, inside('additionalProperties')) : []),
  ]
}
