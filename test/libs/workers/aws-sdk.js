// @aws-sdk/client-s3 against the endpoint in env.S3: put, list, get a range, delete, a missing key.
// What bundlers for the platform take is the build for browsers, whose XML parser wants a DOM:
// the platform has none, so users bring a small one.
import { DOMParser, Node } from "@xmldom/xmldom";
import { DeleteObjectCommand, GetObjectCommand, ListObjectsV2Command, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";

Object.assign(globalThis, { DOMParser, Node });

export default {
  async fetch(request, env) {
    const s3 = new S3Client({
      endpoint: env.S3, region: "auto", forcePathStyle: true,
      credentials: { accessKeyId: env.KEY_ID, secretAccessKey: env.SECRET },
    });
    const Bucket = "sdk";
    await s3.send(new PutObjectCommand({ Bucket, Key: "notes/a b.txt", Body: "hello from a worker", ContentType: "text/plain" }));
    await s3.send(new PutObjectCommand({ Bucket, Key: "notes/bytes", Body: new Uint8Array([1, 2, 3]) }));
    const list = await s3.send(new ListObjectsV2Command({ Bucket, Prefix: "notes/" }));
    const object = await s3.send(new GetObjectCommand({ Bucket, Key: "notes/a b.txt" }));
    const part = await s3.send(new GetObjectCommand({ Bucket, Key: "notes/a b.txt", Range: "bytes=6-9" }));
    await s3.send(new DeleteObjectCommand({ Bucket, Key: "notes/a b.txt" }));
    const missing = await s3.send(new GetObjectCommand({ Bucket, Key: "notes/a b.txt" })).catch((error) => error.name);
    return Response.json({
      keys: list.Contents.map(({ Key, Size }) => [Key, Size]),
      text: await object.Body.transformToString(), type: object.ContentType,
      part: await part.Body.transformToString(), missing,
    });
  },
};
