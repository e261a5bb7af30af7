// graphql-yoga: a schema with resolvers, arguments, an error, a mutation, a subscription over SSE.
import { createSchema, createYoga } from "graphql-yoga";

const films = [{ id: "1", title: "Stalker", year: 1979 }, { id: "2", title: "Alien", year: 1979 }, { id: "3", title: "Brazil", year: 1985 }];
const yoga = createYoga({
  logging: false,
  graphqlEndpoint: "/graphql",
  schema: createSchema({
    typeDefs: /* GraphQL */ `
      type Film { id: ID! title: String! year: Int! }
      type Query { films(year: Int): [Film!]! film(id: ID!): Film }
      type Mutation { addFilm(title: String!, year: Int!): Film! }
      type Subscription { countdown(from: Int!): Int! }
    `,
    resolvers: {
      Query: {
        films: (_, { year }) => films.filter((film) => year === undefined || film.year === year),
        film: (_, { id }) => films.find((film) => film.id === id),
      },
      Mutation: {
        addFilm: (_, film) => (films.push({ id: String(films.length + 1), ...film }), films.at(-1)),
      },
      Subscription: {
        countdown: {
          async *subscribe(_, { from }) {
            for (let i = from; i >= 0; i--) yield { countdown: i };
          },
        },
      },
    },
  }),
});
export default { fetch: yoga.fetch };
