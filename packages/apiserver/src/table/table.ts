/**
 * Tables, the output of `kubectl get`. Columns read cells from objects; each row includes the object as requested by
 * `includeObject`.
 */
import type { ApiObject, Json } from '../codec/object-shape.ts'

export interface Column {
  readonly name: string
  readonly type: string
  readonly format?: string
  readonly description?: string
  /** Above 0: only with `-o wide`. */
  readonly priority?: number
  read(object: ApiObject, nowMs: number): unknown
}

export type IncludeObject = 'None' | 'Metadata' | 'Object'

export function columnDefinitions(columns: readonly Column[]): Json[] {
  return columns.map(({ name, type, format = '', description = '', priority = 0 }) => ({
    name,
    type,
    format,
    description,
    priority,
  }))
}

export function tableRow(
  object: ApiObject,
  columns: readonly Column[],
  include: IncludeObject,
  version: string,
  nowMs: number,
): Json {
  const cells = columns.map((column) => column.read(object, nowMs))
  switch (include) {
    case 'None':
      return { cells, object: null }
    case 'Metadata':
      return { cells, object: partialMetadata(object, version) }
    case 'Object':
      return { cells, object }
  }
}

export function partialMetadata(object: ApiObject, version = 'v1'): Json {
  return { kind: 'PartialObjectMetadata', apiVersion: `meta.k8s.io/${version}`, metadata: object.metadata }
}

/** Age as kubectl prints it: two units for short durations, one for long ones. */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / 1000)
  if (seconds < -1) return '<invalid>'
  if (seconds < 0) return '0s'
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.trunc(seconds / 60)
  if (minutes < 10) return two(minutes, 'm', seconds % 60, 's')
  if (minutes < 180) return `${minutes}m`
  const hours = Math.trunc(minutes / 60)
  if (hours < 8) return two(hours, 'h', minutes % 60, 'm')
  if (hours < 48) return `${hours}h`
  const days = Math.trunc(hours / 24)
  if (hours < 192) return two(days, 'd', hours % 24, 'h')
  if (days < 730) return `${days}d`
  const years = Math.trunc(days / 365)
  return days < 2920 ? two(years, 'y', days % 365, 'd') : `${years}y`
}

function two(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`
}

export function age(time: unknown, nowMs: number): string {
  if (typeof time !== 'string' || time === '') return '<unknown>'
  const at = Date.parse(time)
  return Number.isNaN(at) ? '<unknown>' : humanDuration(nowMs - at)
}

export const nameColumn: Column = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name of the object, unique among its kind and namespace',
  read: (object) => object.metadata.name,
}

export const ageColumn: Column = {
  name: 'Age',
  type: 'string',
  description: 'Time since the object was created',
  read: (object, nowMs) => age(object.metadata.creationTimestamp, nowMs),
}
