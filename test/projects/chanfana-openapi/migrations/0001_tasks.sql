create table tasks (id integer primary key autoincrement, name text not null, done integer not null default 0);
