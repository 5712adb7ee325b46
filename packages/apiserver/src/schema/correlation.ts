/** Correlates new values with old values: fields by name, items of list-maps by key; other lists are not correlated. */
import { jsonEqual } from '../codec/json-equal.ts'
import type { Schema } from './model.ts'

export function findOldItem(schema: Schema, item: unknown, oldList: unknown): unknown {
  if (!Array.isArray(oldList) || schema['x-kubernetes-list-type'] !== 'map') return undefined
  const keys = schema['x-kubernetes-list-map-keys'] ?? []
  const defaults = schema.items?.properties ?? {}
  const keyOf = (value: unknown, key: string): unknown =>
    typeof value === 'object' && value !== null && Object.hasOwn(value, key)
      ? (value as Record<string, unknown>)[key]
      : defaults[key]?.default
  return oldList.find((old) => keys.every((key) => jsonEqual(keyOf(item, key), keyOf(old, key))))
}

export function findOldField(key: string, old: unknown): unknown {
  if (typeof old !== 'object' || old === null || Array.isArray(old) || !Object.hasOwn(old, key)) return undefined
  return (old as Record<string, unknown>)[key]
}
