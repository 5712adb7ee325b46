/** Conversion of objects between the API version of a request and the version that is stored. */
import type { ApiObject } from '../codec/object-shape.ts'
import { internal } from '../exchange/status.ts'
import type { Stored } from '../store/stored-object.ts'
import type { Call } from './call.ts'

export async function inRequestVersion(call: Call, stored: Stored): Promise<ApiObject> {
  const { converter, apiVersion, kind } = call.resource
  if (stored.apiVersion === apiVersion) return stored.object
  if (converter === undefined) return { ...stored.object, apiVersion, kind }
  const [converted] = await converter.convert([stored.object], apiVersion)
  if (converted === undefined) throw internal('conversion returned no object')
  return converted
}

export async function inStorageVersion(call: Call, object: ApiObject): Promise<ApiObject> {
  const { converter, storageVersion } = call.resource
  if (object.apiVersion === storageVersion) return object
  if (converter === undefined) return { ...object, apiVersion: storageVersion }
  const [converted] = await converter.convert([object], storageVersion)
  if (converted === undefined) throw internal('conversion returned no object')
  return converted
}
