/**
 * Checks an applied configuration against the type before the merge; the messages equal those in kube-apiserver's
 * response to an invalid apply.
 */
import { goText } from '../codec/go-text.ts'
import { asList, asMap, shapeOf } from './field-type.ts'
import type { FieldType } from './field-type.ts'
import { TypedValueError, itemElement } from './list-item.ts'
import { elementText, fieldElement } from './path-element.ts'

/** One message per violation, each with its path; empty when the value fits. */
export function checkValue(type: FieldType, value: unknown): string[] {
  const errors: string[] = []
  check(type, value, '', errors)
  return errors
}

/** As one text: a single message as it is, several as a list. */
export function violationText(errors: readonly string[]): string {
  return errors.length === 1 ? errors[0]! : ['errors:', ...errors.map((error) => `  ${error}`)].join('\n')
}

function check(type: FieldType, value: unknown, path: string, errors: string[]): void {
  const report = (message: string): void => void errors.push(path === '' ? message : `${path}: ${message}`)
  switch (shapeOf(type, value)) {
    case 'map':
      checkMap(type, value, path, errors, report)
      break
    case 'list':
      checkList(type, value, path, errors, report)
      break
    case 'scalar':
      checkScalar(type, value, report)
  }
}

function checkMap(
  type: FieldType,
  value: unknown,
  path: string,
  errors: string[],
  report: (message: string) => void,
): void {
  if (value === null || value === undefined) return
  const map = asMap(value)
  if (map === undefined) return report(`expected map, got &{${goText(value)}}`)
  for (const key of Object.keys(map)) {
    const field = type.map!.field(key) ?? type.map!.element?.()
    const inner = `${path}${elementText(fieldElement(key))}`
    if (field === undefined) {
      errors.push(`${inner}: field not declared in schema`)
      return
    }
    check(field, map[key], inner, errors)
  }
}

function checkList(
  type: FieldType,
  value: unknown,
  path: string,
  errors: string[],
  report: (message: string) => void,
): void {
  if (value === null || value === undefined) return
  const list = asList(value)
  if (list === undefined) return report(`expected list, got &{${goText(value)}}`)
  const seen = new Set<string>()
  for (const [index, item] of list.entries()) {
    let step = `[${index}]`
    if (!type.list!.atomic) {
      try {
        const element = itemElement(type.list!, item)
        step = elementText(element)
        if (seen.has(element)) report(`duplicate entries for key ${step}`)
        seen.add(element)
      } catch (error) {
        if (!(error instanceof TypedValueError)) throw error
        return report(`element ${index}: ${error.message}`)
      }
    }
    check(type.list!.element(), item, path + step, errors)
  }
}

function checkScalar(type: FieldType, value: unknown, report: (message: string) => void): void {
  if (value === null || value === undefined) return
  const isScalar = typeof value !== 'object'
  switch (type.scalar) {
    case 'numeric':
      if (typeof value !== 'number') report(`expected numeric (int or float), got ${goType(value)}`)
      break
    case 'string':
      if (typeof value !== 'string') report(`expected string, got &value.valueUnstructured{Value:${goSyntax(value)}}`)
      break
    case 'boolean':
      if (typeof value !== 'boolean') report(`expected boolean, got &{${goText(value)}}`)
      break
    case 'untyped':
      if (!isScalar) report(`expected any scalar, got &{${goText(value)}}`)
      break
    case undefined:
  }
}

function goType(value: unknown): string {
  if (typeof value === 'string') return 'string'
  if (typeof value === 'boolean') return 'bool'
  return Array.isArray(value) ? '[]interface {}' : 'map[string]interface {}'
}

/** Go's `%#v`. */
function goSyntax(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (typeof value !== 'object' || value === null) return goText(value)
  const parts = Array.isArray(value)
    ? value.map(goSyntax)
    : Object.entries(value)
        .toSorted(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, item]) => `${JSON.stringify(key)}:${goSyntax(item)}`)
  return `${goType(value)}{${parts.join(', ')}}`
}
